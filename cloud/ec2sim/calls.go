package ec2sim

import (
	"slices"
	"sync"
	"time"
)

// Call is one request that was served.
type Call struct {
	At          time.Time `json:"at"`
	Service     string    `json:"service"`
	Action      string    `json:"action"`
	Code        string    `json:"code,omitempty"` // error code; empty is success
	Lost        bool      `json:"lost,omitempty"` // the answer was dropped
	ClientToken string    `json:"clientToken,omitempty"`
}

// maxCalls bounds the log; the oldest calls are forgotten, but still counted.
const maxCalls = 100_000

// CallCount sums up the calls of one action.
type CallCount struct {
	Total     int `json:"total"`
	Throttled int `json:"throttled,omitempty"`
	Failed    int `json:"failed,omitempty"` // refused for another reason
	Lost      int `json:"lost,omitempty"`
}

// callLog remembers the requests since the start or the last reset. It is not kept over a restart.
type callLog struct {
	mu     sync.Mutex
	calls  []Call
	counts map[string]CallCount
}

func newCallLog() *callLog { return &callLog{counts: map[string]CallCount{}} }

func (l *callLog) record(c *call, failure *apiError, lost bool) {
	entry := Call{At: c.at, Service: c.service, Action: c.action, Lost: lost, ClientToken: c.form.str("ClientToken")}
	l.mu.Lock()
	defer l.mu.Unlock()
	count := l.counts[c.action]
	count.Total++
	switch {
	case failure == nil:
	case failure.code == errThrottled.code:
		entry.Code = failure.code
		count.Throttled++
	default:
		entry.Code = failure.code
		count.Failed++
	}
	if lost {
		count.Lost++
	}
	l.counts[c.action] = count
	if len(l.calls) >= 2*maxCalls {
		l.calls = slices.Clone(l.calls[maxCalls:])
	}
	l.calls = append(l.calls, entry)
}

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.counts = nil, map[string]CallCount{}
}

// Calls returns the requests whose action matches the pattern, oldest first; an empty pattern is all.
func (s *Server) Calls(pattern string) []Call {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	var out []Call
	for _, c := range s.calls.calls {
		if anyOr(pattern, c.Action) {
			out = append(out, c)
		}
	}
	return out
}

// CallCounts returns how often each action was called.
func (s *Server) CallCounts() map[string]CallCount {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	out := make(map[string]CallCount, len(s.calls.counts))
	for k, v := range s.calls.counts {
		out[k] = v
	}
	return out
}
