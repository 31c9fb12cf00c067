package ec2sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Faults are what can go wrong on demand. The zero value is a healthy cloud.
type Faults struct {
	// Capacity lists pools that run dry.
	Capacity []CapacityFault `json:"capacity,omitempty"`
	// ZonesOut are zones without any capacity, of every type and price.
	ZonesOut []string `json:"zonesOut,omitempty"`
	// Throttle turns EC2's token buckets on: 1 is EC2 as published, 0.1 an account with a tenth of it. 0 turns them off.
	Throttle float64 `json:"throttle,omitempty"`
	// Errors are refusals by action.
	Errors []ErrorFault `json:"errors,omitempty"`
	// Fleet are refusals in the answers of fleets: the request is answered, and its pools are not.
	Fleet []FleetFault `json:"fleet,omitempty"`
	// TemplateLag, ProfileLag, GroupLag and ImageLag are how long launches do not know of a launch template, an instance
	// profile, a security group or an image that was made, and TagLag how long Describe calls show tags as they were before
	// CreateTags and DeleteTags (developer guide, "Eventual consistency in the Amazon EC2 API"). EC2 promises no bounds.
	TemplateLag Duration `json:"templateLag,omitempty"`
	ProfileLag  Duration `json:"profileLag,omitempty"`
	GroupLag    Duration `json:"groupLag,omitempty"`
	ImageLag    Duration `json:"imageLag,omitempty"`
	TagLag      Duration `json:"tagLag,omitempty"`
	// InFlight is the code that a request gets whose client token is that of a request which is still being answered. Empty:
	// it gets the same answer. AWS documents neither.
	InFlight string `json:"inFlight,omitempty"`
	// Lost are answers that never arrive: the operation happens, then the connection is dropped.
	Lost []ReplyFault `json:"lost,omitempty"`
	// Slow are answers that arrive late. The operation itself happens at once.
	Slow []ReplyFault `json:"slow,omitempty"`
	// DescribeLag is how long Describe calls do not know of a launch or a termination.
	DescribeLag Duration `json:"describeLag,omitempty"`
	// NeverRegister and NeverReady are instances whose kubelet never comes up, or never becomes Ready.
	NeverRegister []BootFault `json:"neverRegister,omitempty"`
	NeverReady    []BootFault `json:"neverReady,omitempty"`
	// Die are instances that fail some time after their launch.
	Die []BootFault `json:"die,omitempty"`
	// NoRoles are patterns of IAM roles that do not exist, unless they were made with CreateRole.
	NoRoles []string `json:"noRoles,omitempty"`
	// FreeAddresses overrides how many addresses are free, by subnet id.
	FreeAddresses map[string]int `json:"freeAddresses,omitempty"`
}

// PoolPattern selects pools. Each field is a pattern with * and ?, and empty means any.
type PoolPattern struct {
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"` // "on-demand" or "spot"
}

func (p PoolPattern) matches(q pool) bool {
	return anyOr(p.InstanceType, q.instanceType) && anyOr(p.Zone, q.zone) && anyOr(p.CapacityType, q.capacityType)
}

func anyOr(pattern, value string) bool { return pattern == "" || wildcard(pattern, value) }

// CapacityFault makes the pools it matches give Remaining more instances, in total, and then refuse.
type CapacityFault struct {
	PoolPattern
	Remaining int `json:"remaining,omitempty"`
	// Code of the refusal. Default InsufficientInstanceCapacity.
	Code string `json:"code,omitempty"`
}

// Occurrence says how often a fault strikes: always, or with a probability, or a number of times, or both.
type Occurrence struct {
	// Times is how many requests or instances it strikes; 0 is no limit.
	Times int `json:"times,omitempty"`
	// Probability of each to be struck; 0 means 1.
	Probability float64 `json:"probability,omitempty"`
}

// ErrorFault refuses requests for an action with a code.
type ErrorFault struct {
	Occurrence
	Action  string `json:"action"` // a pattern with * and ?
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Status  int    `json:"status,omitempty"` // HTTP status; default 400, and 503 or 500 for the codes that mean them
}

// FleetFault has pools of a fleet answered with a code, each of them as often as the fault strikes fleets.
type FleetFault struct {
	Occurrence
	PoolPattern
	// Code of the refusal. Empty: the pool gives nothing, and the answer does not say why.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// ReplyFault loses or delays the answers to an action, or to all of a service. A delay longer than any client waits plays a
// service that hangs, as one without an endpoint in an isolated VPC does.
type ReplyFault struct {
	Occurrence
	Action  string   `json:"action,omitempty"`  // a pattern with * and ?; empty means any, of a service
	Service string   `json:"service,omitempty"` // such as ec2, iam or pricing; empty means any, of an action
	Delay   Duration `json:"delay,omitempty"`   // slow answers only
}

func (r ReplyFault) matches(c *call) bool {
	return anyOr(r.Action, c.action) && anyOr(r.Service, c.service)
}

// BootFault strikes instances as they are launched.
type BootFault struct {
	Occurrence
	PoolPattern
	After Duration `json:"after,omitempty"` // dying instances only: their age at death
}

// Duration is a time.Duration that JSON writes as text, "1m30s".
type Duration time.Duration

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads text like "1m30s".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration is written as text like \"30s\": %w", err)
	}
	parsed, err := time.ParseDuration(text)
	*d = Duration(parsed)
	return err
}

func (f *Faults) validate() error {
	for _, e := range f.Errors {
		if e.Action == "" || e.Code == "" {
			return fmt.Errorf("an error fault needs an action and a code")
		}
	}
	for _, r := range append(append([]ReplyFault{}, f.Lost...), f.Slow...) {
		if r.Action == "" && r.Service == "" {
			return fmt.Errorf("a lost or slow reply needs an action or a service")
		}
	}
	if f.Throttle < 0 {
		return fmt.Errorf("throttle %g is negative", f.Throttle)
	}
	return nil
}

func (e ErrorFault) refusal() *apiError {
	out := &apiError{status: e.Status, code: e.Code, message: e.Message}
	if out.status == 0 {
		switch e.Code {
		case "RequestLimitExceeded", "Unavailable", "ServiceUnavailable":
			out.status = http.StatusServiceUnavailable
		case "InternalError", "InternalFailure":
			out.status = http.StatusInternalServerError
		case "UnauthorizedOperation":
			out.status = http.StatusForbidden
		default:
			out.status = http.StatusBadRequest
		}
	}
	setDefault(&out.message, "A fault was asked for.")
	return out
}
