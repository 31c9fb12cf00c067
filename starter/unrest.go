package starter

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// A sweep costs four actions of Temporal, and where nothing has changed since the last one it finds the same again. So the
// Schedule sweeps rarely, as a net, and whoever leads looks at what a sweep compares as often as the sweep is to run, which
// costs no action, and has it run when that has changed: at once, and again for as long as what has just begun may still
// come to nothing.

const (
	// netEvery is how many intervals lie between two sweeps of the Schedule (workflows.SweepNet).
	netEvery = int(workflows.SweepNet / workflows.SweepInterval)
	// restlessFor is how long after a change sweeps go on: an instance without a NodeClaim, a NodeClaim without a workflow and
	// an instance that is gone are believed only after some time. At least two follow a change.
	restlessFor = 2 * time.Minute
)

// unrest knows when what a sweep compares has changed last.
type unrest struct {
	print   uint64
	changed time.Time
}

// due takes in what there is now, where that is known, and says whether a sweep is to run. Where it is not known, it is: who
// could not look now has not seen what changed meanwhile either.
func (u *unrest) due(print uint64, known bool, now time.Time, every time.Duration) bool {
	switch {
	case !known:
		u.changed = now
	case print != u.print:
		u.print, u.changed = print, now
	}
	return now.Sub(u.changed) <= max(restlessFor, 2*every)
}

// fingerprint stands for what a sweep compares: instances, NodeClaims and Nodes by what a sweep asks of them, and how many
// workflows of nodes run.
func (s *Starter) fingerprint(ctx context.Context) (uint64, error) {
	instances, err := s.Instances(ctx, cloud.Query{})
	if err != nil {
		return 0, fmt.Errorf("list instances: %w", err)
	}
	running, err := s.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TenonCluster = '%s' AND WorkflowType IN ('%s') AND ExecutionStatus = 'Running'", s.Cluster,
			strings.Join([]string{workflows.NodeClaimType, workflows.DrainType, workflows.LaunchType, workflows.ReplacementType}, "', '"))})
	if err != nil {
		return 0, fmt.Errorf("count workflows: %w", err)
	}
	hash := fnv.New64a()
	add := func(values ...any) { _, _ = fmt.Fprintln(io.Writer(hash), values...) }
	add(running.GetCount())
	for i := range instances {
		// A sweep names some of the instances, and the next one goes on.
		add(instances[i].ID, instances[i].State, len(instances[i].Tags))
	}
	for _, claim := range s.Mirror.Claims() {
		add(claim.UID, claim.Status.ProviderID, claim.DeletionTimestamp)
	}
	for _, node := range s.Mirror.Nodes() {
		add(node.UID, node.DeletionTimestamp, len(node.Spec.Taints), len(node.Annotations), nodeReady(node))
	}
	return hash.Sum64(), nil
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
