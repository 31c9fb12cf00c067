package ec2sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Instance is a simulated instance as inspection shows it: the truth, without lag.
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

// Instances returns every instance that is not forgotten yet, terminated ones included, ordered by id.
func (s *Server) Instances() []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.settle(now)
	out := []Instance{}
	for _, i := range s.instances.sorted() {
		x := Instance{
			ID: i.ID, Type: i.Type, Zone: i.Zone, CapacityType: i.capacityType(), State: i.state(now).name, Fleet: i.Fleet,
			ClientToken: i.ClientToken, PrivateDNS: s.account.privateDNS(i.PrivateIP), LaunchedAt: i.LaunchedAt,
			PriceUSD: s.hourly(i), EndCode: i.EndCode, Node: string(i.Node), NodeReason: i.NodeReason, Tags: i.Tags,
		}
		if i.ended() {
			ended := i.EndedAt
			x.EndedAt = &ended
		}
		out = append(out, x)
	}
	return out
}

func (s *Server) hourly(i *instance) float64 {
	if t := s.catalogue.Type(i.Type); t != nil {
		return s.market.price(i.pool(), t, s.now())
	}
	return 0
}

// Cost is what the living instances cost.
type Cost struct {
	Instances int            `json:"instances"`
	USDPerHr  float64        `json:"usdPerHour"`
	ByType    map[string]int `json:"byType"`
}

// Cost sums up the instances that are pending or running.
func (s *Server) Cost() Cost {
	c := Cost{ByType: map[string]int{}}
	for _, i := range s.Instances() {
		if i.State == statePending.name || i.State == stateRunning.name {
			c.Instances++
			c.USDPerHr += i.PriceUSD
			c.ByType[i.Type]++
		}
	}
	c.USDPerHr = roundPrice(c.USDPerHr)
	return c
}

// Interrupt announces the interruption of spot instances, and of instances in interruptible capacity reservations, and
// ends them when the notice has passed; EC2 gives two minutes. It is an error if one is not a living instance of either
// sort; then nothing happens to any.
func (s *Server) Interrupt(notice time.Duration, ids ...string) error {
	return s.locked(func(now time.Time) error {
		found, err := s.living(ids)
		if err != nil {
			return err
		}
		for _, i := range found {
			if !i.Spot && !s.interruptible(i) {
				return fmt.Errorf("instance %s is neither a spot instance nor in an interruptible capacity reservation", i.ID)
			}
		}
		for _, i := range found {
			s.interrupt(i, now, now.Add(notice))
		}
		return nil
	})
}

// interrupt announces the interruption of an instance at an instant, which may be to come, and ends it at another.
func (s *Server) interrupt(i *instance, announced, end time.Time) {
	i.InterruptAt = end
	s.instances.put(i.ID, i)
	s.notBefore(i)
	if i.Spot {
		s.announce(announced, s.interruptionEvent(i.ID, announced))
	} else {
		s.announce(announced, s.reservationEvent(i.ID, announced))
	}
	s.wakeKubelets()
}

// interruptible says whether an instance runs in a capacity reservation that its owner may take back.
func (s *Server) interruptible(i *instance) bool {
	r := s.reservations.rows[i.Capacity]
	return r != nil && r.Interruptible
}

// Rebalance announces a rebalance recommendation for the instances. Nothing else happens to them.
func (s *Server) Rebalance(ids ...string) error {
	return s.locked(func(now time.Time) error {
		found, err := s.living(ids)
		for _, i := range found {
			s.announce(now, s.rebalanceEvent(i.ID, now))
		}
		return err
	})
}

// Kill ends the instances at once, as a failure of their hosts would.
func (s *Server) Kill(ids ...string) error {
	return s.locked(func(now time.Time) error {
		found, err := s.living(ids)
		for _, i := range found {
			s.end(i, now, "Server.InternalError", "Server.InternalError: Internal error")
		}
		return err
	})
}

func (s *Server) living(ids []string) ([]*instance, error) {
	var found []*instance
	for _, id := range ids {
		i := s.instances.rows[id]
		if i == nil || i.ended() {
			return nil, fmt.Errorf("no living instance %s", id)
		}
		found = append(found, i)
	}
	return found, nil
}

// Reset forgets everything but the seeded account: instances, templates, profiles, messages, tokens, faults and calls.
// Nodes that joined stay in the cluster.
func (s *Server) Reset() error {
	s.calls.reset()
	return s.locked(func(time.Time) error {
		s.instances.clear()
		s.templates.clear()
		s.fleets.clear()
		s.replies.clear()
		s.profiles.clear()
		s.tags.clear()
		s.queues.clear()
		s.ownImages.clear()
		s.ownGroups.clear()
		s.subnetOptions.clear()
		s.roles.clear()
		s.ownParameters.clear()
		s.makeOptions()
		s.addresses.clear()
		s.reservations.clear()
		s.experimentTemplates.clear()
		s.experiments.clear()
		s.userData.clear()
		s.faultRow.put(faultsID, &Faults{})
		clear(s.hits)
		clear(s.buckets)
		clear(s.inUse)
		clear(s.further)
		return nil
	})
}

type instancesRequest struct {
	Instances []string `json:"instances"`
	Notice    Duration `json:"notice,omitempty"`
	// Event names what POST /_sim/event announces.
	Event string `json:"event,omitempty"`
}

// spotNotice is the warning time EC2 gives.
const spotNotice = Duration(2 * time.Minute)

// serveControl is the endpoint described in the package comment.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	var out any = struct{}{}
	var err error
	switch r.Method + " " + r.URL.Path {
	case "GET /_sim/health":
	case "GET /_sim/instances":
		out = s.Instances()
	case "GET /_sim/calls":
		if action := r.URL.Query().Get("action"); action != "" {
			calls := s.Calls(action)
			out = append([]Call{}, calls...)
		} else {
			out = s.CallCounts()
		}
	case "GET /_sim/cost":
		out = s.Cost()
	case "GET /_sim/faults":
		out = s.Faults()
	case "PUT /_sim/faults":
		var faults Faults
		if err = decodeControl(r, &faults); err == nil {
			err = s.SetFaults(faults)
		}
	case "DELETE /_sim/faults":
		err = s.SetFaults(Faults{})
	default:
		act := s.orders()[r.Method+" "+r.URL.Path]
		if act == nil {
			w.WriteHeader(http.StatusNotFound)
			s.writeControl(w, map[string]string{"error": "no such control: " + r.Method + " " + r.URL.Path}, nil)
			return
		}
		out, err = act(r)
	}
	s.writeControl(w, out, err)
}

// orders are the controls that have something happen.
func (s *Server) orders() map[string]func(*http.Request) (any, error) {
	instances := func(do func(instancesRequest) error) func(*http.Request) (any, error) {
		return func(r *http.Request) (any, error) {
			in := instancesRequest{Notice: spotNotice}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, do(in)
		}
	}
	return map[string]func(*http.Request) (any, error){
		"POST /_sim/calls/reset": func(*http.Request) (any, error) { s.calls.reset(); return struct{}{}, nil },
		"POST /_sim/calls/keep": func(r *http.Request) (any, error) {
			var in struct {
				Actions []string `json:"actions"`
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			s.KeepParameters(in.Actions...)
			return struct{}{}, nil
		},
		"POST /_sim/reset":     func(*http.Request) (any, error) { return struct{}{}, s.Reset() },
		"POST /_sim/interrupt": instances(func(in instancesRequest) error { return s.Interrupt(time.Duration(in.Notice), in.Instances...) }),
		"POST /_sim/rebalance": instances(func(in instancesRequest) error { return s.Rebalance(in.Instances...) }),
		"POST /_sim/kill":      instances(func(in instancesRequest) error { return s.Kill(in.Instances...) }),
		"POST /_sim/event":     instances(func(in instancesRequest) error { return s.Announce(in.Event, in.Instances...) }),
		"POST /_sim/message": func(r *http.Request) (any, error) {
			var in struct {
				Body string `json:"body"`
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, s.Post(in.Body)
		},
		"POST /_sim/status": func(r *http.Request) (any, error) {
			var in struct {
				Instances []string `json:"instances"`
				Status
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, s.SetStatus(in.Status, in.Instances...)
		},
		"POST /_sim/image": func(r *http.Request) (any, error) {
			var made Image
			if err := decodeControl(r, &made); err != nil {
				return nil, err
			}
			id, err := s.AddImage(made)
			return map[string]string{"id": id}, err
		},
		"POST /_sim/parameter": func(r *http.Request) (any, error) {
			var in struct{ Name, Value string }
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, s.SetParameter(in.Name, in.Value)
		},
		"POST /_sim/pods": func(r *http.Request) (any, error) {
			var in struct {
				Instances []string
				Pods      int
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, s.SetPods(in.Pods, in.Instances...)
		},
		"POST /_sim/reserve": func(r *http.Request) (any, error) {
			var want Reservation
			if err := decodeControl(r, &want); err != nil {
				return nil, err
			}
			id, err := s.Reserve(want)
			return map[string]string{"id": id}, err
		},
	}
}

// decodeControl is strict, so that a misspelt fault does not silently do nothing.
func decodeControl(r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxRequestBody))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (s *Server) writeControl(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"error": err.Error()}
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.log.Debug("answer control request", zap.Error(err))
	}
}
