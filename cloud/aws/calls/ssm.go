package calls

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// SSM are the calls to Systems Manager.
type SSM struct {
	GetParameter func(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// NewSSM takes the calls from a client.
func NewSSM(client *ssm.Client) *SSM { return &SSM{GetParameter: client.GetParameter} }
