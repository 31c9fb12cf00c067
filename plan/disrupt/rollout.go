package disrupt

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// rollouts track how many drifted nodes the rollouts of NodePools allow to be replaced, across all commands of one
// evaluation. How far each is, lifecycle.JudgeRollout has decided and written on the NodePool.
type rollouts struct {
	in *model.Input
	// pools are those that were asked about, by name.
	pools map[string]*poolRollout
}

// poolRollout is the rollout of one pool.
type poolRollout struct {
	// kept says why no node goes; nil if some may.
	kept *model.Verdict
	// want is how many nodes of the target the step allows, and has how many there are or will be.
	want, has int
	state     karpv1.RolloutState
	step      string
}

func newRollouts(in *model.Input) *rollouts { return &rollouts{in, map[string]*poolRollout{}} }

// refusal says why the rollout of a node's pool keeps the node although it has drifted; nil if it does not.
func (r *rollouts) refusal(n *model.Node, pool *karpv1.NodePool, reason karpv1.DisruptionReason) *model.Verdict {
	if _, some := pool.Annotations[karpv1.RolloutAnnotationKey]; !some || reason != karpv1.DisruptionReasonDrifted {
		return nil
	}
	of := r.pools[pool.Name]
	if of == nil {
		of = r.begin(pool)
		r.pools[pool.Name] = of
	}
	switch {
	case of.kept != nil:
		return of.kept
	case n.DriftedAt.After(of.state.Seen):
		return stays(model.CauseRollout, "the rollout of its NodePool has not seen yet that it has drifted")
	case of.has >= of.want:
		return stays(model.CauseRollout, "the rollout of its NodePool is at %s, which allows %d new nodes, and %d are new or on their way", of.step, of.want, of.has)
	}
	return nil
}

// begin reads how far the rollout of a pool is.
func (r *rollouts) begin(pool *karpv1.NodePool) *poolRollout {
	of := &poolRollout{}
	if of.kept = rolloutStopped(pool, karpv1.DisruptionReasonDrifted); of.kept != nil {
		return of
	}
	rollout, err := pool.Rollout()
	if err == nil {
		of.state, err = pool.RolloutState()
	}
	target, looked := r.in.Targets[pool.Name]
	switch {
	case err != nil: // RolloutStop has read the same
		of.kept = stays(model.CauseRollout, "the rollout of its NodePool cannot be read: %v", err)
	case of.state.Target == "" || looked && target != of.state.Target:
		of.kept = stays(model.CauseRollout, "what its NodePool's nodes are made from has changed, and its rollout has not begun anew yet")
	default:
		counted := lifecycle.CountDrifting(r.in.Snapshot.Nodes, pool.Name, of.state.Began)
		of.want, of.has, of.step = rollout.Want(of.state.Step, counted.Nodes), counted.New+counted.Moving, rollout.Describe(of.state.Step)
	}
	return of
}

// take counts a drifted node that will be replaced.
func (r *rollouts) take(pool string, reason karpv1.DisruptionReason) {
	if of := r.pools[pool]; of != nil && reason == karpv1.DisruptionReasonDrifted {
		of.has++
	}
}

// rolloutStopped says that the rollout of a pool is stopped or cannot be read, so that no node goes for having drifted; nil
// if not.
func rolloutStopped(pool *karpv1.NodePool, reason karpv1.DisruptionReason) *model.Verdict {
	if pool == nil || reason != karpv1.DisruptionReasonDrifted {
		return nil
	}
	if why := pool.RolloutStop(); why != "" {
		return stays(model.CauseRollout, "%s", why)
	}
	return nil
}

// rolledBack says that a node of a pool with a rollout no longer drifts, as when a person has gone back to what it was made
// from; nil if it does.
func rolledBack(n *model.Node, pool *karpv1.NodePool, reason karpv1.DisruptionReason) *model.Verdict {
	if pool == nil || n.Drifted || reason != karpv1.DisruptionReasonDrifted {
		return nil
	}
	if _, some := pool.Annotations[karpv1.RolloutAnnotationKey]; !some {
		return nil
	}
	return stays(model.CauseNone, "it no longer drifts")
}
