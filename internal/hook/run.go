package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// errNotAllowed says that the worker was not told to let hooks do this.
var errNotAllowed = errors.New("is not allowed")

// Run runs a hook until it succeeds, fails for good, or its time is over.
func (r *Runner) Run(ctx context.Context, h karpv1.Hook, about About) error {
	about.Hook, about.When = h.Name, h.When
	ctx, cancel := context.WithTimeoutCause(ctx, h.Within(), fmt.Errorf("it took longer than %s", h.Within()))
	defer cancel()
	if h.HTTP != nil {
		if !r.mayCall(h.HTTP.URL) {
			return fmt.Errorf("%s %w: the worker's --hook-url has no beginning of it", h.HTTP.URL, errNotAllowed)
		}
		return r.call(ctx, h.HTTP.URL, about)
	}
	if !slices.Contains(r.allowed.JobNamespaces, h.Job.Namespace) {
		return fmt.Errorf("a Job in the namespace %s %w: the worker's --hook-job-namespace does not have it", h.Job.Namespace, errNotAllowed)
	}
	return r.runJob(ctx, h, about)
}
