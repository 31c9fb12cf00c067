package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

// Sweep compares the cloud, the cluster and the workflows. What it finds was left by a crash at an unlucky line, by a bug
// or by a person, so it is careful: it reads the claims after the instances, acts only on what is old enough, and asks
// Temporal about each workflow by id, since the list of workflows may lag. It compares the cluster as the mirror shows it,
// and reads what looks wrong there from the API server before it concludes anything. What it cannot put right it names in
// the result, and continues with the rest. How many nodes one sweep removes is limited; see sweepcap.go.
func (w *sweeper) Sweep(ctx context.Context, in workflows.SweepInput) (workflows.SweepResult, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	instances, err := w.cloud.Instances(ctx, cloud.Query{})
	if err != nil {
		return workflows.SweepResult{}, cloudFailure("list instances", err)
	}
	if err := w.mirror.Fresh(freshEnough); err != nil {
		return workflows.SweepResult{}, fmt.Errorf("compare the cluster: %w", err)
	}
	claims := w.mirror.Claims()
	nodes := slices.DeleteFunc(w.mirror.Nodes(), func(node *corev1.Node) bool { return node.Labels[karpv1.NodeRegisteredLabelKey] == "" })
	s := sweep{sweeper: w, now: time.Now(), instances: map[string]cloud.Instance{}, claims: map[string]*karpv1.NodeClaim{},
		named: map[string]*karpv1.NodeClaim{}, alive: map[string]bool{},
		most:   sweepMost(w.share, len(instances)),
		result: workflows.SweepResult{Instances: len(instances), Claims: len(claims)}}
	for _, instance := range instances {
		s.instances[instance.ProviderID] = instance
		s.alive[instance.ID] = true
	}
	for _, claim := range claims {
		s.named[claim.Name] = claim
		if id := claim.Status.ProviderID; id != "" {
			s.claims[id] = claim
		}
	}
	if err := s.list(ctx); err != nil {
		return s.result, err
	}
	if s.vanished(); s.result.Stopped == "" {
		s.lives(ctx)
		s.orphans(ctx, instances)
	}
	s.adoptions(ctx, claims)
	s.strays(ctx)
	s.nodes(ctx, nodes)
	s.marks(ctx, nodes)
	s.unasked(ctx, claims)
	s.nameInstances(ctx)
	s.reservations(ctx)
	s.leftovers(ctx, in.Leftovers)
	s.stuck(ctx)
	w.metrics.swept(s.result)
	if r := s.result; len(r.Terminated)+len(r.Adopted)+len(r.Lost)+len(r.Nodes)+len(r.Unmarked)+len(r.Unasked)+len(r.Dropped)+len(r.Relabelled)+len(r.Ended)+len(r.Collected)+len(r.Failed)+len(r.Stuck)+r.Withheld > 0 || r.Stopped != "" {
		logs.Of(ctx, w.log).Warn("sweep put something right", zap.Strings("terminated", r.Terminated), zap.Strings("adopted", r.Adopted), zap.Strings("ended", r.Ended),
			zap.Strings("lost", r.Lost), zap.Strings("nodes", r.Nodes), zap.Strings("unmarked", r.Unmarked), zap.Strings("unasked", r.Unasked), zap.Strings("dropped", r.Dropped), zap.Strings("relabelled", r.Relabelled),
			zap.Strings("collected", r.Collected), zap.Strings("failed", r.Failed), zap.Strings("stuck", r.Stuck), zap.Int("withheld", r.Withheld), zap.String("stopped", r.Stopped))
	}
	return s.result, ctx.Err()
}
