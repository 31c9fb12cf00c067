// Package failpoint lets a test kill a worker at a chosen side effect, as a power cut would.
//
// A point is named by the side effect and the moment: `PATCH nodes before`, `EC2 CreateFleet after`, `Join ack`.
//
//	before  the request has not been sent
//	after   the reply has been received, and nothing has been done with it
//	ack     an activity is over, and Temporal has not been told
//
// `PATCH nodes#2 after` is the second such request that got as far as this moment. The environment variable
// TENON_FAILPOINTS lists points separated by commas; TENON_FAILPOINTS_DIR is a directory in which each point that has
// struck leaves a file of its name, so that it strikes once, and so that a test sees which have. Occurrences are counted
// there as well, over all restarts. At a point the process sends itself SIGKILL: nothing is flushed, closed or deferred.
//
// The points sit where a worker meets the world, in its HTTP transports and in an interceptor around activities, so no
// line of the product knows of them. Without the variable nothing is installed.
package failpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
)

// The environment variables FromEnvironment reads.
const (
	PointsVariable = "TENON_FAILPOINTS"
	DirVariable    = "TENON_FAILPOINTS_DIR"
)

// Points are the places at which this process kills itself. A nil *Points has none.
type Points struct {
	dir string
	mu  sync.Mutex
	// left are the points that have not struck, by name.
	left map[string]bool
}

// FromEnvironment returns the points the environment asks for, nil where it asks for none.
func FromEnvironment() (*Points, error) {
	list, dir := os.Getenv(PointsVariable), os.Getenv(DirVariable)
	if list == "" {
		return nil, nil
	}
	if dir == "" {
		return nil, fmt.Errorf("%s is set without %s, the directory that remembers which points have struck", PointsVariable, DirVariable)
	}
	p := &Points{dir: dir, left: map[string]bool{}}
	for name := range strings.SplitSeq(list, ",") {
		if _, err := os.Stat(filepath.Join(dir, file(name))); errors.Is(err, os.ErrNotExist) {
			p.left[name] = true
		}
	}
	return p, nil
}

// Struck returns the points that have struck according to a directory.
func Struck(dir string, names []string) (struck, left []string) {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, file(name))); err == nil {
			struck = append(struck, name)
		} else {
			left = append(left, name)
		}
	}
	return struck, left
}

// file is the name of a point's file.
func file(name string) string { return url.PathEscape(name) }

// hit is called at every moment of every side effect, and does not return from a point.
func (p *Points) hit(effect, moment string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.concerns(effect, moment) {
		return
	}
	count := p.count(effect + " " + moment)
	for _, name := range []string{effect + " " + moment, fmt.Sprintf("%s#%d %s", effect, count, moment)} {
		if !p.left[name] {
			continue
		}
		marker, err := os.OpenFile(filepath.Join(p.dir, file(name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			delete(p.left, name)
			continue
		}
		_ = marker.Close()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// concerns reports whether a point is about this effect and moment, so that others need not be counted.
func (p *Points) concerns(effect, moment string) bool {
	for name := range p.left {
		bare := name
		if head, tail, numbered := strings.Cut(name, "#"); numbered {
			_, at, _ := strings.Cut(tail, " ")
			bare = head + " " + at
		}
		if bare == effect+" "+moment {
			return true
		}
	}
	return false
}

// count counts an occurrence, over all restarts.
func (p *Points) count(what string) int {
	counter, err := os.OpenFile(filepath.Join(p.dir, file("count "+what)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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

// Kubernetes puts the points around a transport to the API server.
func (p *Points) Kubernetes(next http.RoundTripper) http.RoundTripper {
	return transport{points: p, next: next, name: kubernetesEffect}
}

// AWS puts the points around an AWS SDK's HTTP client.
func (p *Points) AWS(next interface {
	Do(*http.Request) (*http.Response, error)
}) *AWSClient {
	return &AWSClient{transport{points: p, next: roundTrip(next.Do), name: awsEffect}}
}

// AWSClient is an HTTP client for the AWS SDK.
type AWSClient struct{ transport transport }

// Do sends a request.
func (c *AWSClient) Do(r *http.Request) (*http.Response, error) { return c.transport.RoundTrip(r) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// transport is an HTTP transport with points before and after each side effect.
type transport struct {
	points *Points
	next   http.RoundTripper
	// name returns the side effect a request is, nothing for one that only reads.
	name func(*http.Request) string
}

// RoundTrip sends a request, unless a point strikes first.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	effect := t.name(r)
	if effect == "" {
		return t.next.RoundTrip(r)
	}
	t.points.hit(effect, "before")
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode < 300 {
		t.points.hit(effect, "after")
	}
	return response, err
}

// kubernetesEffect names a write to the API server: method, resource and subresource.
func kubernetesEffect(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ""
	}
	// /api/v1/... or /apis/<group>/<version>/..., then namespaces/<namespace>/ where there is one.
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) <= skip {
		return ""
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	switch parts[0] {
	case "events", "leases":
		return ""
	}
	effect := r.Method + " " + parts[0]
	if len(parts) > 2 {
		effect += "/" + parts[2]
	}
	return effect
}

// awsEffect names a call to EC2 or IAM that is not a mere look: the Action of the Query protocol.
func awsEffect(r *http.Request) string {
	if r.Body == nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return ""
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return ""
	}
	action := form.Get("Action")
	for _, reading := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(action, reading) {
			return ""
		}
	}
	if form.Get("DryRun") == "true" {
		return ""
	}
	return "EC2 " + action
}

// Interceptor puts a point between the end of an activity and Temporal's hearing of it.
func (p *Points) Interceptor() interceptor.WorkerInterceptor { return &workers{points: p} }

type workers struct {
	interceptor.WorkerInterceptorBase
	points *Points
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (w *workers) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	inbound := &acknowledged{points: w.points}
	inbound.Next = next
	return inbound
}

type acknowledged struct {
	interceptor.ActivityInboundInterceptorBase
	points *Points
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *acknowledged) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	result, err := a.Next.ExecuteActivity(ctx, in)
	if err == nil {
		a.points.hit(activity.GetInfo(ctx).ActivityType.Name, "ack")
	}
	return result, err
}
