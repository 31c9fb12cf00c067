package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/activities/nominate"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// nominatedFor is how long pods that were planned for an existing node protect it: twice the batch window, as in Karpenter.
const nominatedFor = 20 * time.Second

// planner plans the pending pods, and creates the claims that they need.
type planner struct {
	mirror Mirror
	seen   seen
	inputs *inputs
	// creator creates the planned claims, nominator tells the kube-scheduler about the plan, and explained tells people why
	// the other pods stay pending.
	creator   *creator
	nominator *nominate.Nominator
	explained explained
	// metrics counts pods for which launching further nodes is paused; nil disables the metrics.
	metrics *GrowthMetrics
	// counts measures plans.
	counts *Metrics
	// batchIdle and batchMost are the window in which pending pods are collected; see Config.
	batchIdle, batchMost time.Duration
	log                  *zap.Logger
}

// Plan waits until the burst of pending pods has ended, plans them over the mirror, and creates NodeClaims: those that
// static pools lack, and those for the pods. Groups and claims are named after the plan's id, so that a second attempt
// finds what the first one created and plans nothing twice: it returns those groups, and leaves the rest to the next plan.
func (p *planner) Plan(ctx context.Context, in workflows.PlanInput) (workflows.PlanResult, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	if activity.GetInfo(ctx).Attempt > 1 {
		if earlier, err := p.creator.created(ctx, in.Plan); err != nil || len(earlier.Groups) > 0 {
			return earlier, err
		}
	}
	anew, err := p.seen.awaitClaims(ctx, in.SeenVersion, in.ClusterUID)
	if err != nil {
		return workflows.PlanResult{}, fmt.Errorf("plan: %w", err)
	}
	if anew {
		in.SeenVersion = ""
	}
	if err := p.mirror.QuietPods(ctx, p.batchIdle, p.batchMost); err != nil {
		return workflows.PlanResult{}, fmt.Errorf("wait for pods: %w", err)
	}
	if err := p.mirror.Fresh(freshEnough); err != nil {
		return workflows.PlanResult{}, fmt.Errorf("plan: %w", err)
	}
	began := time.Now()
	p.counts.planBegins(began)
	snapshot := p.mirror.Snapshot()
	input := p.inputs.of(ctx, snapshot, in.Unavailable)
	input.Growth = p.inputs.growth(in.Grown, snapshot, input.Pools)
	p.metrics.planned(input.Growth, in.Grown, snapshot.Time)
	static, refused := plan.Static(input)
	packed := plan.Pack(input)
	packed.Claims = slices.Concat(static, packed.Claims)
	took := time.Since(began)
	p.counts.planned(snapshot.Pending, packed, took, snapshot.Time)
	p.mirror.Planned(packed, snapshot.Time.Add(nominatedFor))
	p.nominator.Placed(snapshot, packed.Placements)
	p.explained.explain(packed.Unplaced, input.Growth, snapshot.Time)
	p.explained.tellUnsellable(packed.Unsellable, input.Pools, snapshot.Time)
	result := workflows.PlanResult{Note: planNote(packed, snapshot.Pending, refused), SeenVersion: in.SeenVersion, ClusterUID: p.seen.clusterUID, Anew: anew, Looked: snapshot.Time,
		Grown: grown(input.Growth)}
	claims := packed.Claims
	if len(claims) > maxClaims {
		claims, result.Again = claims[:maxClaims], true
	}
	if err := p.creator.create(ctx, in, claims, &result); err != nil {
		return workflows.PlanResult{}, err
	}
	p.explained.tellNominated(snapshot.Pending, claims, result.Groups)
	p.counts.planCarriedOut(time.Since(began))
	logs.Of(ctx, p.log).Info("planned", zap.String("plan", in.Plan), zap.Int("pending", len(snapshot.Pending)), zap.Int("claims", len(claims)), zap.Int("groups", len(result.Groups)),
		zap.Int("placed", len(packed.Placements)), zap.Int("unplaced", len(packed.Unplaced)), zap.Float64("pricePerHour", packed.PricePerHour()), zap.Duration("took", took))
	return result, nil
}
