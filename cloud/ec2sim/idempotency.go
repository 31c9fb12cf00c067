package ec2sim

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// savedReply is the answer to a request with a client token. The same request gets the same answer again, even if that
// reports that nothing could be launched; a different request with the token is refused.
type savedReply struct {
	Hash  string // of the parameters
	Inner string // XML inside the root element
	At    time.Time
	// Answered is when the first request is answered; until then it is in flight.
	Answered time.Time
}

// clientTokens keeps the answers to requests with client tokens, and the instant fleets, for keepReplies.
type clientTokens struct {
	faults  *injector
	replies *table[savedReply]
	fleets  *table[fleet]
}

// once runs an action at most once per client token. It does not record refused requests: their token can be used again.
func (t *clientTokens) once(c *call, run func() (any, error)) (any, error) {
	token := c.form.str("ClientToken")
	if token == "" || *orFalse(c.form.flag("DryRun")) {
		return run()
	}
	if len(token) > maxClientToken {
		return nil, invalidValue("ClientToken is longer than %d characters", maxClientToken)
	}
	sum := sha256.Sum256([]byte(c.form.canonical("ClientToken", "Action", "Version")))
	hash := hex.EncodeToString(sum[:])
	key := c.action + "/" + token
	t.forget(c.at)
	if saved := t.replies.rows[key]; saved != nil {
		if saved.Hash != hash {
			return nil, refuse("IdempotentParameterMismatch", "The request uses the same client token as a previous, but non-identical request.")
		}
		if code := t.faults.current().InFlight; code != "" && c.at.Before(saved.Answered) {
			return nil, ErrorFault{Code: code}.refusal()
		}
		c.replayed = true
		return rawXML(saved.Inner), nil
	}
	value, err := run()
	if err == nil {
		err = c.effective() // the answer to a refused call is not saved
	}
	if err != nil {
		return nil, err
	}
	inner, err := innerXML(value)
	if err != nil {
		return nil, err
	}
	t.replies.put(key, &savedReply{Hash: hash, Inner: string(inner), At: c.at, Answered: c.answeredAt})
	return inner, nil
}

// keepReplies is how long client tokens are kept; EC2 promises no more.
const keepReplies = 24 * time.Hour

// forget deletes tokens and instant fleets older than keepReplies.
func (t *clientTokens) forget(now time.Time) {
	for key, r := range t.replies.rows {
		if now.Sub(r.At) > keepReplies {
			t.replies.del(key)
		}
	}
	for id, f := range t.fleets.rows {
		if now.Sub(f.CreatedAt) > keepReplies {
			t.fleets.del(id)
		}
	}
}
