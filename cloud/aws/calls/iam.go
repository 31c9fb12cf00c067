package calls

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// IAM are the calls to IAM.
type IAM struct {
	AddRoleToInstanceProfile      iamCall[iam.AddRoleToInstanceProfileInput, iam.AddRoleToInstanceProfileOutput]
	CreateInstanceProfile         iamCall[iam.CreateInstanceProfileInput, iam.CreateInstanceProfileOutput]
	DeleteInstanceProfile         iamCall[iam.DeleteInstanceProfileInput, iam.DeleteInstanceProfileOutput]
	GetInstanceProfile            iamCall[iam.GetInstanceProfileInput, iam.GetInstanceProfileOutput]
	RemoveRoleFromInstanceProfile iamCall[iam.RemoveRoleFromInstanceProfileInput, iam.RemoveRoleFromInstanceProfileOutput]

	// These are what the paginators of the SDK take.
	ListInstanceProfiles listInstanceProfiles
}

// NewIAM takes the calls from a client.
func NewIAM(client *iam.Client) *IAM {
	return &IAM{
		AddRoleToInstanceProfile:      client.AddRoleToInstanceProfile,
		CreateInstanceProfile:         client.CreateInstanceProfile,
		DeleteInstanceProfile:         client.DeleteInstanceProfile,
		GetInstanceProfile:            client.GetInstanceProfile,
		RemoveRoleFromInstanceProfile: client.RemoveRoleFromInstanceProfile,

		ListInstanceProfiles: client.ListInstanceProfiles,
	}
}

// iamCall is one of them.
type iamCall[In, Out any] func(context.Context, *In, ...func(*iam.Options)) (*Out, error)

// A paginator calls a method of the name of the call.
type (
	listInstanceProfiles iamCall[iam.ListInstanceProfilesInput, iam.ListInstanceProfilesOutput]
)

func (f listInstanceProfiles) ListInstanceProfiles(ctx context.Context, in *iam.ListInstanceProfilesInput, options ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error) {
	return f(ctx, in, options...)
}
