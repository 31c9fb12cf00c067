package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// state is what a run saves about itself, so that it can be resumed. It holds no secrets.
type state struct {
	Run     string `json:"run"`
	Region  string `json:"region"`
	Cluster string `json:"cluster"`
	// Hour is the on-demand price of the instances, and Disk that of their volumes, in the currency of the region's prices.
	Hour float64 `json:"hour"`
	Disk float64 `json:"disk"`
	// Spent are the launches, in order; each is saved before it is sent.
	Spent []*spent `json:"spent"`

	file string
}

// spent is a launch whose token has been sent.
type spent struct {
	Step string `json:"step"`
	// Request is what was sent, with its token.
	Request cloud.LaunchRequest `json:"request"`
	SentAt  time.Time           `json:"sentAt"`
	// Answer is the first answer; nil while there is none.
	Answer *answer `json:"answer,omitempty"`
}

// answer is EC2's answer to a launch on the wire.
type answer struct {
	RequestID string `json:"requestID,omitempty"`
	Status    int    `json:"status"`
	// Error is the code of a request that was refused as a whole.
	Error string `json:"error,omitempty"`
	Fleet string `json:"fleet,omitempty"`
	// Instances are ids, sorted; Errors the codes of the answer's errors, sorted.
	Instances []string `json:"instances,omitempty"`
	Errors    []string `json:"errors,omitempty"`
}

// due returns the time at which the tokens were spent long enough ago.
func (s *state) due() time.Time {
	var last time.Time
	for _, one := range s.Spent {
		if one.SentAt.After(last) {
			last = one.SentAt
		}
	}
	return last.Add(again)
}

// keep writes the state, if there is a file for it, under a temporary name first.
func (s *state) keep() error {
	if s.file == "" {
		return nil
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if err := os.WriteFile(s.file+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	if err := os.Rename(s.file+".new", s.file); err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	return nil
}

func loadState(file string) (*state, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s := &state{file: file}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read state %s: %w", file, err)
	}
	if len(s.Spent) == 0 {
		return nil, errors.New("the run that is to be resumed has spent no token")
	}
	return s, nil
}

// find returns the launch of a step, or nil if it was not sent.
func (s *state) find(step string) *spent {
	for _, one := range s.Spent {
		if one.Step == step {
			return one
		}
	}
	return nil
}

// again is how much later a run is resumed: EC2 keeps a client token for at least 24 hours (developer guide, "Ensuring
// idempotency in Amazon EC2 API requests").
const again = 25 * time.Hour
