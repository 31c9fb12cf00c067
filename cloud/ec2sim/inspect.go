package ec2sim

import (
	"time"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// Instance is a simulated instance in its true state, without lag.
type Instance struct {
	ID           string            `json:"id"`
	Type         string            `json:"type"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	State        string            `json:"state"`
	Fleet        string            `json:"fleet,omitempty"`
	ClientToken  string            `json:"clientToken,omitempty"`
	PrivateDNS   string            `json:"privateDNS"`
	PriceUSD     float64           `json:"priceUSD"` // per hour
	LaunchedAt   time.Time         `json:"launchedAt"`
	EndedAt      *time.Time        `json:"endedAt,omitempty"`
	EndCode      string            `json:"endCode,omitempty"`
	Node         string            `json:"node,omitempty"`       // "joined", "failed" or "stopped"
	NodeReason   string            `json:"nodeReason,omitempty"` // why the kubelet did not come up
	Tags         map[string]string `json:"tags,omitempty"`
}

// Cost is the cost of the pending and running instances.
type Cost struct {
	Instances int            `json:"instances"`
	USDPerHr  float64        `json:"usdPerHour"`
	ByType    map[string]int `json:"byType"`
}

// Instances returns every known instance, including terminated ones that are not forgotten yet, ordered by id.
func (s *Server) Instances() []Instance {
	out := []Instance{}
	s.guard.look(func(now time.Time) {
		for _, i := range s.instances.sorted() {
			x := Instance{
				ID: i.ID, Type: i.Type, Zone: i.Zone, CapacityType: i.capacityType(), State: i.state(now).name, Fleet: i.Fleet,
				ClientToken: i.ClientToken, PrivateDNS: s.account.privateDNS(i), LaunchedAt: i.LaunchedAt,
				PriceUSD: s.prices.hourly(i, s.opts.Now()), EndCode: i.EndCode, Node: string(i.Node), NodeReason: i.NodeReason, Tags: i.Tags,
			}
			if i.ended() {
				ended := i.EndedAt
				x.EndedAt = &ended
			}
			out = append(out, x)
		}
	})
	return out
}

// Cost returns the total cost of the instances that are pending or running.
func (s *Server) Cost() Cost {
	c := Cost{ByType: map[string]int{}}
	for _, i := range s.Instances() {
		if i.State == statePending.name || i.State == stateRunning.name {
			c.Instances++
			c.USDPerHr += i.PriceUSD
			c.ByType[i.Type]++
		}
	}
	c.USDPerHr = catalogue.RoundPrice(c.USDPerHr)
	return c
}

// KeepParameters makes the log record the parameters of future calls whose action matches one of the patterns, which
// replace the previous patterns. A CreateFleet may have a thousand parameters, so by default none are recorded.
func (s *Server) KeepParameters(patterns ...string) { s.calls.keep(patterns) }

// Calls returns the requests whose action matches the pattern, oldest first; an empty pattern matches all.
func (s *Server) Calls(pattern string) []Call { return s.calls.matching(pattern) }

// CallCounts returns how often each action was called.
func (s *Server) CallCounts() map[string]CallCount { return s.calls.tally() }
