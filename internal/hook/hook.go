// Package hook runs what NodePools have to happen outside Tenon when a node has come up or is about to be drained: an HTTP call
// or a Job (annotation tenon.sh/hooks).
//
// Whoever may edit a NodePool may run code on its nodes anyway, but must not thereby make a worker call whatever address it
// reaches, or create Jobs anywhere. So the worker is told which addresses and namespaces hooks may use; by default there are
// none.
//
// A hook runs at least once. A worker that dies in the middle is followed by another, which calls again, with the same
// Idempotency-Key; a Job has a name that follows from the node, so it is created once.
//
// Reading order: hook, call, job, run.
package hook

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// About is what a hook is told, as the JSON body of a call or as environment variables of a Job (TENON_NODE for Node).
type About struct {
	Hook string           `json:"hook"`
	When karpv1.HookPoint `json:"when"`
	// Cluster is the cluster's name, as its worker has it.
	Cluster  string `json:"cluster"`
	Node     string `json:"node"`
	NodeUID  string `json:"nodeUID"`
	Claim    string `json:"nodeClaim"`
	NodePool string `json:"nodePool"`
	// ProviderID names the instance, such as aws:///us-east-1a/i-0123456789abcdef0.
	ProviderID string `json:"providerID"`
	// Reason is why the node is drained, and Deadline when its drain ends at the latest; both empty for AfterReady.
	Reason   string    `json:"reason,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// key tells the runs of hooks apart. It is the same for every try of one run.
func (a *About) key() string { return a.NodeUID + "/" + string(a.When) + "/" + a.Hook }

// Allowed is what hooks may use.
type Allowed struct {
	// URLs are beginnings of addresses: scheme, host and port have to be the same, and the path has to begin with theirs.
	URLs []string
	// JobNamespaces are the namespaces of CronJobs and of the Jobs made from them.
	JobNamespaces []string
}

// Runner runs hooks.
type Runner struct {
	allowed Allowed
	// jobs reads CronJobs, and reads and creates Jobs.
	jobs client.Client
	http *http.Client
}

// New returns a Runner for what is allowed.
func New(allowed Allowed, jobs client.Client) (*Runner, error) {
	for _, prefix := range allowed.URLs {
		if u, err := url.Parse(prefix); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("allowed addresses of hooks: %q must begin with http:// or https:// and name a host", prefix)
		}
	}
	return &Runner{allowed: allowed, jobs: jobs, http: &http.Client{
		// A redirect could lead to an address that is not allowed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// mayCall says whether an address begins with an allowed one.
func (r *Runner) mayCall(address string) bool {
	to, err := url.Parse(address)
	if err != nil || to.User != nil || slices.Contains(strings.Split(to.Path, "/"), "..") {
		return false
	}
	return slices.ContainsFunc(r.allowed.URLs, func(prefix string) bool {
		from, err := url.Parse(prefix)
		base := strings.TrimSuffix(from.Path, "/")
		return err == nil && from.Scheme == to.Scheme && from.Host == to.Host && (to.Path == base || strings.HasPrefix(to.Path, base+"/"))
	})
}
