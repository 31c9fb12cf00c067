package failpoint

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"go.temporal.io/sdk/activity"
)

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
	// name returns the side effect of a request, or "" if it only reads.
	name func(r *http.Request, body []byte) string
}

// RoundTrip sends a request, unless a point strikes first.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return t.next.RoundTrip(r)
	}
	body, err := peek(r)
	if err != nil {
		return nil, err
	}
	effect := t.name(r, body)
	if effect == "" {
		return t.next.RoundTrip(r)
	}
	s := side{effect: effect, body: body}
	if activity.IsActivity(r.Context()) {
		s.activity = activity.GetInfo(r.Context()).ActivityType.Name
	}
	t.points.hit(s, "before")
	response, err := t.next.RoundTrip(r)
	switch {
	case err != nil:
	case response.StatusCode < 300:
		t.points.hit(s, "after")
	default:
		t.points.hit(s, "refused")
	}
	return response, err
}

// peek reads a request's body and leaves the request as it was.
func peek(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// kubernetesEffect names a write to the API server: method, resource and subresource.
func kubernetesEffect(r *http.Request, _ []byte) string {
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

// awsEffect names a call to EC2 or IAM that does not only read, by the Action of the Query protocol.
func awsEffect(r *http.Request, body []byte) string {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return ""
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("DryRun") == "true" {
		return ""
	}
	action := form.Get("Action")
	for _, reading := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(action, reading) {
			return ""
		}
	}
	return "EC2 " + action
}
