package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// typesShown is how many of a planned node's instance types an answer lists.
const typesShown = 5

// answerer explains how the planner and an evaluation would decide at the moment.
type answerer struct {
	mirror    Mirror
	inputs    *inputs
	evaluator *evaluator
	// plans has room for as many plans as may be made at once to answer questions.
	plans chan struct{}
}

// answersAtOnce is for how many questions about pods plans are made at once. Each takes as much memory as a plan of all pending
// pods, and who asks about a hundred pods must not take the worker away from those who wait for nodes.
const answersAtOnce = 2

// WhyPod returns the planner's current verdict on a pending pod, planned together with all other pending pods. It changes
// nothing. It may miss a plan of another worker whose claims have not reached the mirror yet.
func (a *answerer) WhyPod(ctx context.Context, in workflows.PodQuestion) (workflows.PodAnswer, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	// The snapshot is taken after the wait, so that the answer is not older than it has to be.
	select {
	case a.plans <- struct{}{}:
		defer func() { <-a.plans }()
	case <-ctx.Done():
		return workflows.PodAnswer{}, ctx.Err()
	}
	if err := a.mirror.Fresh(freshEnough); err != nil {
		return workflows.PodAnswer{}, fmt.Errorf("plan for %s/%s: %w", in.Namespace, in.Name, err)
	}
	snapshot := a.mirror.Snapshot()
	at := slices.IndexFunc(snapshot.Pending, func(p *plan.Pod) bool { return p.Namespace == in.Namespace && p.Name == in.Name && !p.Virtual })
	if at < 0 {
		return workflows.PodAnswer{Verdict: workflows.PodUnknown, Pending: len(snapshot.Pending)}, nil
	}
	pod := snapshot.Pending[at]
	answer := workflows.PodAnswer{Judged: pod.Unschedulable, Pending: len(snapshot.Pending)}
	for _, node := range snapshot.Nodes {
		if slices.Contains(node.Promised, pod.UID) {
			answer.Verdict, answer.Node = workflows.PodPromised, node.Key()
			return answer, nil
		}
	}
	if !pod.Unschedulable {
		asked := *pod
		asked.Unschedulable = true
		pod = &asked
		snapshot.Pending = slices.Clone(snapshot.Pending)
		snapshot.Pending[at] = pod
	}
	input := a.inputs.of(ctx, snapshot, in.Unavailable)
	input.Growth = a.inputs.growth(in.Grown, snapshot, input.Pools)
	judge(&answer, plan.Pack(input), pod)
	return answer, nil
}

// judge fills in the answer with what a plan decides about a pod.
func judge(answer *workflows.PodAnswer, packed plan.Plan, pod *plan.Pod) {
	answer.Verdict = workflows.PodUnknown
	for _, placement := range packed.Placements {
		if placement.Pod.UID == pod.UID {
			answer.Verdict, answer.Node = workflows.PodFits, placement.Node
		}
	}
	for i := range packed.Claims {
		if claim := &packed.Claims[i]; slices.Contains(claim.Pods, pod.UID) {
			answer.Verdict = workflows.PodLaunch
			answer.NodePool, answer.CapacityType, answer.Zones, answer.PricePerHour = claim.NodePool, claim.CapacityType, claim.Zones, claim.PricePerHour
			answer.InstanceTypes = claim.InstanceTypes[:min(typesShown, len(claim.InstanceTypes))]
		}
	}
	for _, left := range packed.Unplaced {
		if left.Pod.UID != pod.UID {
			continue
		}
		answer.Verdict = workflows.PodUnplaced
		for _, reason := range left.Reasons {
			answer.Reasons = append(answer.Reasons, workflows.PodReason{NodePool: reason.NodePool, Message: reason.Message})
		}
	}
}
