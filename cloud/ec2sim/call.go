package ec2sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// call is one parsed request.
type call struct {
	id      string // request id
	service string // ec2, iam, ssm, ...: as in the signature's credential scope
	action  string
	// accessKey identifies the principal; region is the one that the request was signed for.
	accessKey, region string
	form              *params         // Query protocols
	body              json.RawMessage // JSON protocols
	host              string
	at                time.Time
	// answeredAt is when the answer is sent, including delays by faults.
	answeredAt time.Time
	// replayed is true if the answer is that of an earlier call with the same client token.
	replayed bool
}

// handler handles one action. It runs under the guard and returns the value that the protocol encodes.
type handler func(c *call) (any, error)

// run runs the handler of a call. It fails if the call has parameters that the handler did not read.
func (c *call) run(h handler) (any, error) {
	if c.service == "ec2" && strings.HasPrefix(c.action, "Describe") && *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	if c.form != nil {
		c.form.forget() // forget the reads of the model check and of the policies
		c.form.flag("DryRun")
	}
	value, err := h(c)
	if err == nil || errors.Is(err, errDryRun) {
		err = cmp.Or(c.effective(), err)
	}
	return value, err
}
