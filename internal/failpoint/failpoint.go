// Package failpoint lets a test kill a worker at a chosen side effect, as a power cut would.
//
// A point is named by the side effect and the moment, as in `PATCH nodes before`, `EC2 CreateFleet after`, `Join ack`:
//
//	before  the request has not been sent
//	after   the reply has been received, and nothing has been done with it
//	refused the reply has been received, it is an error, and nothing has been done with it
//	ack     an activity is over, and Temporal has not been told
//
// If that is not exact enough, a point can also name the activity, a part of the request's body, and which of several
// occurrences is meant: `Evict: PATCH nodes{disrupted}#2 before`.
//
// The environment variable TENON_FAILPOINTS lists points separated by commas. TENON_FAILPOINTS_DIR is a directory in which
// each point that has struck leaves a file of its name, so that it strikes only once and a test can see which have struck.
// Occurrences are counted there as well, over all restarts. At a point the process sends itself SIGKILL: nothing is flushed,
// closed or deferred.
//
// Three variables shorten waits that are too long for tests. TENON_FAILPOINTS_HEARTBEAT limits the heartbeat timeout of
// every activity, so that a test that kills often need not wait long for each death to be noticed. TENON_FAILPOINTS_STABLE
// is how long replacements serve before the nodes are removed, and TENON_FAILPOINTS_SERVE is how long they may take to
// serve.
//
// The points are at the worker's boundaries, in its HTTP transports (transport.go) and in interceptors around activities and
// workflows (interceptor.go), so no line of product code knows of them. Without a variable nothing is installed.
package failpoint

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The environment variables FromEnvironment reads.
const (
	PointsVariable    = "TENON_FAILPOINTS"
	DirVariable       = "TENON_FAILPOINTS_DIR"
	HeartbeatVariable = "TENON_FAILPOINTS_HEARTBEAT"
	StableVariable    = "TENON_FAILPOINTS_STABLE"
	ServeVariable     = "TENON_FAILPOINTS_SERVE"
)

// Points are the places at which this process kills itself, and limits on what it waits for.
type Points struct {
	dir string
	bounds
	mu sync.Mutex
	// left are the points that have not struck.
	left []point
}

// bounds limit what a worker waits for; zero means no limit.
type bounds struct {
	// heartbeat limits heartbeat timeouts, stable how long replacements serve before the nodes are removed, and serve how
	// long they may take to serve.
	heartbeat, stable, serve time.Duration
}

// point is the parsed name of one place.
type point struct {
	name, activity, effect, text, moment string
	// nth is the occurrence that is meant; zero is the first.
	nth int
}

// FromEnvironment returns the points and bounds that are set in the environment, or nil if none is.
func FromEnvironment() (*Points, error) {
	p := &Points{dir: os.Getenv(DirVariable)}
	for variable, bound := range map[string]*time.Duration{HeartbeatVariable: &p.heartbeat, StableVariable: &p.stable, ServeVariable: &p.serve} {
		value := os.Getenv(variable)
		if value == "" {
			continue
		}
		var err error
		if *bound, err = time.ParseDuration(value); err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
	}
	list := os.Getenv(PointsVariable)
	if list == "" {
		if p.bounds == (bounds{}) {
			return nil, nil
		}
		return p, nil
	}
	if p.dir == "" {
		return nil, fmt.Errorf("%s is set without %s, the directory that remembers which points have struck", PointsVariable, DirVariable)
	}
	for name := range strings.SplitSeq(list, ",") {
		parsed, err := parse(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", PointsVariable, err)
		}
		if _, err := os.Stat(filepath.Join(p.dir, file(name))); errors.Is(err, os.ErrNotExist) {
			p.left = append(p.left, parsed)
		}
	}
	return p, nil
}

// Struck returns the points that have struck according to a directory, with the time at which each did.
func Struck(dir string, names []string) map[string]time.Time {
	struck := map[string]time.Time{}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, file(name))); err == nil {
			struck[name] = info.ModTime()
		}
	}
	return struck
}

// parse parses a point's name.
func parse(name string) (point, error) {
	p := point{name: name}
	effect, moment, ok := cutLast(name, " ")
	if !ok || !slices.Contains([]string{"before", "after", "refused", "ack"}, moment) {
		return p, fmt.Errorf("point %q: must end in before, after, refused or ack", name)
	}
	p.moment = moment
	if head, nth, numbered := cutLast(effect, "#"); numbered {
		var err error
		if p.nth, err = strconv.Atoi(nth); err != nil || p.nth < 1 {
			return p, fmt.Errorf("point %q: %q is not the number of an occurrence", name, nth)
		}
		effect = head
	}
	if head, text, bounded := strings.Cut(effect, "{"); bounded {
		effect, p.text = head, strings.TrimSuffix(text, "}")
	}
	p.effect = effect
	if activity, rest, bounded := strings.Cut(effect, ": "); bounded {
		p.activity, p.effect = activity, rest
	}
	return p, nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	at := strings.LastIndex(s, separator)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(separator):], true
}

// file is the name of a point's file.
func file(name string) string { return url.PathEscape(name) }

// side is a side effect as it happens.
type side struct {
	// activity is the activity that causes it; empty outside of activities.
	activity string
	// effect is the method and resource of a request, or the name of an activity that is over.
	effect string
	body   []byte
}

func (p point) means(s side, moment string) bool {
	return p.effect == s.effect && p.moment == moment && (p.activity == "" || p.activity == s.activity) &&
		(p.text == "" || strings.Contains(string(s.body), p.text))
}

// hit is called at every moment of every side effect. It does not return at a point.
func (p *Points) hit(s side, moment string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, point := range p.left {
		if !point.means(s, moment) || point.nth > 0 && p.count(point.name) != point.nth {
			continue
		}
		marker, err := os.OpenFile(filepath.Join(p.dir, file(point.name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			continue // another worker was struck here
		}
		_ = marker.Close()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// count records an occurrence that matches a point, and returns their number over all restarts; zero if it cannot.
func (p *Points) count(name string) int {
	counter, err := os.OpenFile(filepath.Join(p.dir, file("count "+name)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0
	}
	defer func() { _ = counter.Close() }()
	if _, err := counter.WriteString("."); err != nil {
		return 0
	}
	info, err := counter.Stat()
	if err != nil {
		return 0
	}
	return int(info.Size())
}
