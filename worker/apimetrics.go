package worker

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientgo "k8s.io/client-go/tools/metrics"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// countAPI counts the requests of all clients of this process to the API server. client-go takes such counters once.
func countAPI(set *metrics.Set) {
	clientgo.Register(clientgo.RegisterOpts{
		RequestLatency: apiLatency{set.Histogram("client_go_request_duration_seconds")},
		RequestResult:  apiResult{set.Counter("client_go_request_total")},
	})
}

// apiResult counts requests.
type apiResult struct{ requests *prometheus.CounterVec }

// Increment implements client-go's ResultMetric.
func (r apiResult) Increment(_ context.Context, code, method, _ string) {
	r.requests.WithLabelValues(code, method).Inc()
}

// apiLatency measures requests.
type apiLatency struct{ durations *prometheus.HistogramVec }

// Observe implements client-go's LatencyMetric. In the path of the URL, names are written {name} and {namespace}.
func (l apiLatency) Observe(_ context.Context, verb string, u url.URL, took time.Duration) {
	group, version, resource, subresource, named := resourceOf(u.Path)
	if resource == "" {
		return
	}
	switch verb {
	case "POST":
		verb = "CREATE"
	case "GET":
		if !named {
			verb = "LIST"
		}
	case "PUT":
		verb = "UPDATE"
		if !named {
			verb = "CREATE"
		}
	}
	l.durations.With(prometheus.Labels{"verb": verb, "group": group, "version": version, "kind": resource, "subresource": subresource}).Observe(took.Seconds())
}

// resourceOf takes a path of the API apart: /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale. The resource is empty
// if it is the path of no resource.
func resourceOf(path string) (group, version, resource, subresource string, named bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return "", "", "", "", false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		subresource = strings.Join(parts[2:], "/")
	}
	return group, version, parts[0], subresource, len(parts) > 1
}
