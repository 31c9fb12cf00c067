package ec2sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// call is one request, taken apart.
type call struct {
	id      string // request id
	service string // ec2, iam, ssm, ...: as in the signature's credential scope
	action  string
	// accessKey tells the principal, region the one that the request was signed for.
	accessKey, region string
	form              *params         // Query protocols
	body              json.RawMessage // JSON protocols
	host              string
	at                time.Time
	// answeredAt is when the answer is sent, faults considered.
	answeredAt time.Time
	// replayed says that the answer is that of an earlier call with the same client token.
	replayed bool
}

// handler answers one action. It runs under the guard and returns the value that the protocol encodes.
type handler func(c *call) (any, error)

// run runs the handler of a call and holds the call to what the handler looked at.
func (c *call) run(h handler) (any, error) {
	if c.service == "ec2" && strings.HasPrefix(c.action, "Describe") && *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	if c.form != nil {
		c.form.forget() // what was looked at for the model and for policies
		c.form.flag("DryRun")
	}
	value, err := h(c)
	if err == nil || errors.Is(err, errDryRun) {
		err = cmp.Or(c.effective(), err)
	}
	return value, err
}
