package ec2sim

import (
	"encoding/json"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// ControlHelp describes the control endpoint.
const ControlHelp = `Control and inspection, JSON over HTTP below /_sim/:
  GET    /_sim/health          answers as soon as the simulator serves
  GET    /_sim/instances       every instance as it truly is, without describe lag; terminated ones for an hour
  GET    /_sim/cost            number of living instances, their price per hour, and how many of each type
  GET    /_sim/calls           per action: total, throttled, failed, lost; since the start or the last reset
  GET    /_sim/calls?action=P  the calls themselves, with time, error code and client token; P may have * and ?
  POST   /_sim/calls/reset     forget the calls
  POST   /_sim/calls/keep      {"actions":["Create*"]}: from now on, calls of these actions carry their parameters, as sent
  GET    /_sim/faults          the faults in force
  PUT    /_sim/faults          replace them (below)
  DELETE /_sim/faults          heal everything
  POST   /_sim/interrupt       {"instances":["i-..."],"notice":"2m"}: interruption of spot instances, and of those in an
                               interruptible capacity reservation, with the event to every SQS queue
  POST   /_sim/rebalance       {"instances":["i-..."]}: rebalance recommendation to every SQS queue
  POST   /_sim/event           {"event":"stopped","instances":["i-..."]}: only the event to every SQS queue, whether there are
                               such instances or not: spot-interruption, rebalance-recommendation, reservation-interruption,
                               scheduled-change (of AWS Health), or a state: pending to terminated
  POST   /_sim/message         {"body":"..."}: any text to every SQS queue
  POST   /_sim/status          {"instances":["i-..."],"instance":"impaired","system":"ok","for":"3m","event":"instance-stop"}:
                               what DescribeInstanceStatus says of instances: checks failed since a while ago, a scheduled event
  POST   /_sim/kill            {"instances":["i-..."]}: the machines die at once
  POST   /_sim/reserve         {"type":"m5.large","zone":"us-east-1a","count":3,"targeted":true,"block":false,"tags":{}}:
                               a capacity reservation; answers its id
  POST   /_sim/zonal-shift     {"zone":"us-east-1a","for":"1h"}: ARC shifts the cluster's traffic away from a zone; without "for",
                               the shift ends; "kind" may be ZONAL_AUTOSHIFT or PRACTICE_RUN
  POST   /_sim/image           {"name":"...","arch":"x86_64","owner":"210987654321","public":false,"shared":true,"tags":{},
                               "created":"2026-01-31T12:00:00Z","deprecated":"...","bootMode":"uefi","noENA":false,"rootGiB":20}:
                               an image of this account or, with "owner", of another; answers its id
  POST   /_sim/parameter       {"name":"/team/image","value":"ami-..."}: a parameter in Systems Manager
  POST   /_sim/pods            {"instances":["i-..."],"pods":40}: so many pods with addresses of their own run on them, where the
                               simulator plays the VPC CNI plugin
  POST   /_sim/reset           back to the empty account, without faults

Faults, all optional; patterns have * and ?, durations are text like "30s", and "times" and "probability" limit how
often a fault strikes:
  {"capacity":      [{"instanceType":"m5.*","zone":"us-east-1a","capacityType":"spot","remaining":2,"code":"..."}],
   "zonesOut":      ["us-east-1b"],
   "throttle":      0.1,              EC2's published request buckets, times this; 0 turns throttling off
   "errors":        [{"action":"Describe*","code":"InternalError","message":"...","status":500,"times":3}],
   "fleet":         [{"zone":"us-east-1a","code":"InternalError","times":1}],   the answer of a fleet says it of its pools;
                                     without a code they give nothing, and it does not say why
  "templateLag":   "5s",             launches learn of launch templates this late; with "profileLag", "groupLag" and "imageLag"
                                     of instance profiles, security groups and images; with "tagLag" Describe calls of tags
  "inFlight":      "...",            code for a token whose first request is still being answered; "" gives the same answer
  "lost":          [{"action":"CreateFleet","times":1}],         done, but the answer never arrives
   "slow":          [{"action":"*","delay":"2s","probability":0.5}],
                     {"service":"pricing","delay":"10m"} hangs
   "describeLag":   "30s",            Describe calls learn of launches and ends this late
   "neverRegister": [{"instanceType":"c5.*","times":1}],          booted, but no Node appears
   "neverReady":    [{"zone":"us-east-1c"}],
   "die":           [{"after":"45s","probability":0.1}],
   "noRoles":       ["nodes-*"],      there are no such IAM roles
   "freeAddresses": {"subnet-...":3}}
`

// controlAPI is the control endpoint below /_sim/, which ControlHelp describes. It calls the methods of Server.
type controlAPI struct{ server *Server }

type instancesRequest struct {
	Instances []string `json:"instances"`
	Notice    Duration `json:"notice,omitempty"`
	// Event names what POST /_sim/event announces.
	Event string `json:"event,omitempty"`
}

// serve answers one request.
func (a controlAPI) serve(w http.ResponseWriter, r *http.Request) {
	var out any = struct{}{}
	var err error
	switch r.Method + " " + r.URL.Path {
	case "GET /_sim/health":
	case "GET /_sim/instances":
		out = a.server.Instances()
	case "GET /_sim/calls":
		if action := r.URL.Query().Get("action"); action != "" {
			calls := a.server.Calls(action)
			out = append([]Call{}, calls...)
		} else {
			out = a.server.CallCounts()
		}
	case "GET /_sim/cost":
		out = a.server.Cost()
	case "GET /_sim/faults":
		out = a.server.Faults()
	case "PUT /_sim/faults":
		var faults Faults
		if err = decodeControl(r, &faults); err == nil {
			err = a.server.SetFaults(faults)
		}
	case "DELETE /_sim/faults":
		err = a.server.SetFaults(Faults{})
	default:
		act := a.orders()[r.Method+" "+r.URL.Path]
		if act == nil {
			w.WriteHeader(http.StatusNotFound)
			a.write(w, map[string]string{"error": "no such control: " + r.Method + " " + r.URL.Path}, nil)
			return
		}
		out, err = act(r)
	}
	a.write(w, out, err)
}

// orders returns the handlers of the POST requests, by method and path.
func (a controlAPI) orders() map[string]func(*http.Request) (any, error) {
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
		"POST /_sim/calls/reset": func(*http.Request) (any, error) { a.server.calls.reset(); return struct{}{}, nil },
		"POST /_sim/calls/keep": func(r *http.Request) (any, error) {
			var in struct {
				Actions []string `json:"actions"`
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			a.server.KeepParameters(in.Actions...)
			return struct{}{}, nil
		},
		"POST /_sim/reset":     func(*http.Request) (any, error) { return struct{}{}, a.server.Reset() },
		"POST /_sim/interrupt": instances(func(in instancesRequest) error { return a.server.Interrupt(time.Duration(in.Notice), in.Instances...) }),
		"POST /_sim/rebalance": instances(func(in instancesRequest) error { return a.server.Rebalance(in.Instances...) }),
		"POST /_sim/kill":      instances(func(in instancesRequest) error { return a.server.Kill(in.Instances...) }),
		"POST /_sim/event":     instances(func(in instancesRequest) error { return a.server.Announce(in.Event, in.Instances...) }),
		"POST /_sim/zonal-shift": func(r *http.Request) (any, error) {
			var in struct {
				Zone string   `json:"zone"`
				Kind string   `json:"kind"`
				For  Duration `json:"for"`
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, a.server.ShiftZoneAs(in.Zone, in.Kind, time.Duration(in.For))
		},
		"POST /_sim/message": func(r *http.Request) (any, error) {
			var in struct {
				Body string `json:"body"`
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, a.server.Post(in.Body)
		},
		"POST /_sim/status": func(r *http.Request) (any, error) {
			var in struct {
				Instances []string `json:"instances"`
				Status
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, a.server.SetStatus(in.Status, in.Instances...)
		},
		"POST /_sim/image": func(r *http.Request) (any, error) {
			var made Image
			if err := decodeControl(r, &made); err != nil {
				return nil, err
			}
			id, err := a.server.AddImage(made)
			return map[string]string{"id": id}, err
		},
		"POST /_sim/parameter": func(r *http.Request) (any, error) {
			var in struct{ Name, Value string }
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, a.server.SetParameter(in.Name, in.Value)
		},
		"POST /_sim/pods": func(r *http.Request) (any, error) {
			var in struct {
				Instances []string
				Pods      int
			}
			if err := decodeControl(r, &in); err != nil {
				return nil, err
			}
			return struct{}{}, a.server.SetPods(in.Pods, in.Instances...)
		},
		"POST /_sim/reserve": func(r *http.Request) (any, error) {
			var want Reservation
			if err := decodeControl(r, &want); err != nil {
				return nil, err
			}
			id, err := a.server.Reserve(want)
			return map[string]string{"id": id}, err
		},
	}
}

// decodeControl rejects unknown fields, so that a misspelt fault does not silently do nothing.
func decodeControl(r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxRequestBody))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// write answers with a value, or with an error.
func (a controlAPI) write(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"error": err.Error()}
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		a.server.log.Debug("answer control request", zap.Error(err))
	}
}
