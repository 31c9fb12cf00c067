package ec2sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Faults are the failures to simulate. The zero value is a healthy cloud.
type Faults struct {
	// Capacity limits the capacity of pools.
	Capacity []CapacityFault `json:"capacity,omitempty"`
	// ZonesOut are zones without any capacity, of every type and price.
	ZonesOut []string `json:"zonesOut,omitempty"`
	// Throttle turns EC2's token buckets on: 1 means the published limits, 0.1 a tenth of them. 0 turns them off.
	Throttle float64 `json:"throttle,omitempty"`
	// Errors refuse requests, by action.
	Errors []ErrorFault `json:"errors,omitempty"`
	// Fleet makes pools fail within a CreateFleet request that itself succeeds.
	Fleet []FleetFault `json:"fleet,omitempty"`
	// TemplateLag, ProfileLag, GroupLag and ImageLag are how long launches do not see a new launch template, instance
	// profile, security group or image, and TagLag how long Describe calls show tags as they were before CreateTags and
	// DeleteTags (developer guide, "Eventual consistency in the Amazon EC2 API"). EC2 promises no bounds. A new placement
	// group is pending for PlacementGroupLag.
	TemplateLag Duration `json:"templateLag,omitempty"`
	ProfileLag  Duration `json:"profileLag,omitempty"`
	GroupLag    Duration `json:"groupLag,omitempty"`
	ImageLag    Duration `json:"imageLag,omitempty"`
	TagLag      Duration `json:"tagLag,omitempty"`

	PlacementGroupLag Duration `json:"placementGroupLag,omitempty"`
	// InFlight is the error code for a request with the client token of another request that is still being answered. If
	// it is empty, both get the same answer. AWS documents neither.
	InFlight string `json:"inFlight,omitempty"`
	// Lost are answers that never arrive: the operation happens, then the connection is dropped.
	Lost []ReplyFault `json:"lost,omitempty"`
	// Slow are answers that arrive late. The operation itself happens at once.
	Slow []ReplyFault `json:"slow,omitempty"`
	// DescribeLag is how long Describe calls do not see a launch or a termination.
	DescribeLag Duration `json:"describeLag,omitempty"`
	// NeverRegister and NeverReady select instances whose kubelet never comes up, or never becomes Ready.
	NeverRegister []BootFault `json:"neverRegister,omitempty"`
	NeverReady    []BootFault `json:"neverReady,omitempty"`
	// Die selects instances that fail some time after their launch.
	Die []BootFault `json:"die,omitempty"`
	// NoRoles are patterns of IAM roles that do not exist unless CreateRole created them.
	NoRoles []string `json:"noRoles,omitempty"`
	// FreeAddresses overrides the number of free addresses, by subnet id.
	FreeAddresses map[string]int `json:"freeAddresses,omitempty"`
}

// PoolPattern selects pools. Each field is a pattern with * and ?; empty matches any.
type PoolPattern struct {
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"` // "on-demand" or "spot"
}

func (p PoolPattern) matches(q pool) bool {
	return anyOr(p.InstanceType, q.instanceType) && anyOr(p.Zone, q.zone) && anyOr(p.CapacityType, q.capacityType)
}

func anyOr(pattern, value string) bool { return pattern == "" || wildcard(pattern, value) }

// CapacityFault limits the pools it matches to Remaining more instances in total; further launches are refused.
type CapacityFault struct {
	PoolPattern
	Remaining int `json:"remaining,omitempty"`
	// Code of the refusal. Default InsufficientInstanceCapacity.
	Code string `json:"code,omitempty"`
}

// Occurrence says how often a fault strikes: always, with a probability, a limited number of times, or both.
type Occurrence struct {
	// Times limits how many requests or instances the fault strikes; 0 means no limit.
	Times int `json:"times,omitempty"`
	// Probability is that of each request or instance to be struck; 0 means 1.
	Probability float64 `json:"probability,omitempty"`
}

// ErrorFault refuses requests for an action with a code.
type ErrorFault struct {
	Occurrence
	Action  string `json:"action"` // a pattern with * and ?
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Status  int    `json:"status,omitempty"` // HTTP status; default 400, or 403, 500 or 503 for the codes that imply them
}

// FleetFault makes the pools of a fleet that it matches fail with a code. The Occurrence counts fleets: one strike
// affects all matching pools.
type FleetFault struct {
	Occurrence
	PoolPattern
	// Code of the refusal. Empty: the pool gives nothing, and the answer does not say why.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// ReplyFault loses or delays the answers to an action, or to all actions of a service. A delay longer than any client
// waits simulates a service that hangs, such as one without an endpoint in an isolated VPC.
type ReplyFault struct {
	Occurrence
	Action  string   `json:"action,omitempty"`  // a pattern with * and ?; empty means any of the service
	Service string   `json:"service,omitempty"` // such as ec2, iam or pricing; empty means any
	Delay   Duration `json:"delay,omitempty"`   // slow answers only
}

func (r ReplyFault) matches(c *call) bool {
	return anyOr(r.Action, c.action) && anyOr(r.Service, c.service)
}

// BootFault strikes instances when they are launched.
type BootFault struct {
	Occurrence
	PoolPattern
	Image string   `json:"image,omitempty"` // pattern of the image's name; empty matches any
	After Duration `json:"after,omitempty"` // dying instances only: their age at death
}

func (f BootFault) strikesAt(q pool, im *image) bool {
	return f.matches(q) && anyOr(f.Image, im.Name)
}

// Duration is a time.Duration whose JSON form is text, such as "1m30s".
type Duration time.Duration

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON parses text such as "1m30s".
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
