package ec2sim

import (
	"slices"
	"sync"
	"time"
)

// Call is one served request.
type Call struct {
	At          time.Time `json:"at"`
	Service     string    `json:"service"`
	Action      string    `json:"action"`
	Code        string    `json:"code,omitempty"` // error code; empty is success
	Lost        bool      `json:"lost,omitempty"` // the answer was dropped
	ClientToken string    `json:"clientToken,omitempty"`
	// Parameters are those of a Query protocol by their dotted names, as received; set only for actions whose parameters
	// are kept.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// maxCalls is the minimum number of calls that the log keeps. At twice as many it drops the oldest, which stay counted.
const maxCalls = 100_000

// CallCount counts the calls of one action.
type CallCount struct {
	Total     int `json:"total"`
	Throttled int `json:"throttled,omitempty"`
	Failed    int `json:"failed,omitempty"` // refused for another reason
	Lost      int `json:"lost,omitempty"`
}

// callLog records the requests since the start or the last reset. It does not survive a restart.
type callLog struct {
	mu     sync.Mutex
	calls  []Call
	counts map[string]CallCount
	kept   []string // patterns of the actions whose parameters are kept
}

func newCallLog() *callLog { return &callLog{counts: map[string]CallCount{}} }

func (l *callLog) record(c *call, failure *apiError, lost bool) {
	entry := Call{At: c.at, Service: c.service, Action: c.action, Lost: lost, ClientToken: c.form.str("ClientToken")}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pattern := range l.kept {
		if wildcard(pattern, c.action) {
			entry.Parameters = c.form.flat()
			break
		}
	}
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

// keep makes the log record the parameters of future calls whose action matches one of the patterns.
func (l *callLog) keep(patterns []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.Clone(patterns)
}

// matching returns the requests whose action matches the pattern, oldest first; an empty pattern matches all.
func (l *callLog) matching(pattern string) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Call
	for _, c := range l.calls {
		if anyOr(pattern, c.Action) {
			out = append(out, c)
		}
	}
	return out
}

// tally returns how often each action was called.
func (l *callLog) tally() map[string]CallCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]CallCount, len(l.counts))
	for k, v := range l.counts {
		out[k] = v
	}
	return out
}
