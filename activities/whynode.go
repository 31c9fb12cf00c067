package activities

import (
	"context"
	"fmt"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// WhyNode returns what an evaluation would decide about a node now, together with all others. It changes nothing.
func (a *answerer) WhyNode(ctx context.Context, in workflows.NodeQuestion) (workflows.NodeAnswer, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	if err := a.mirror.Fresh(freshEnough); err != nil {
		return workflows.NodeAnswer{}, fmt.Errorf("evaluate node %s: %w", in.Name, err)
	}
	running, _, err := a.evaluator.underWay(ctx, in.Evaluate.Running)
	if err != nil {
		return workflows.NodeAnswer{}, err
	}
	snapshot := a.mirror.Snapshot()
	overlay(snapshot, going(running, in.Evaluate.Leaving))
	at := slices.IndexFunc(snapshot.Nodes, func(n *plan.Node) bool { return n.Name == in.Name })
	if at < 0 {
		at = slices.IndexFunc(snapshot.Nodes, func(n *plan.Node) bool { return n.Claim == in.Name })
	}
	if at < 0 {
		return workflows.NodeAnswer{}, nil
	}
	input := a.inputs.of(ctx, snapshot, in.Evaluate.Unavailable)
	input.Held, input.Settling, input.Begun = holds(in.Evaluate.Held, snapshot), settling(running), begun(a.evaluator.lately.counted(snapshot, remembered(in.Evaluate.Disrupted, a.evaluator.lately.get())))
	return answerAbout(snapshot.Nodes[at], a.evaluator.disruptions.answer(input)), nil
}

// answerAbout returns what was decided about a node.
func answerAbout(node *plan.Node, found plan.Disruption) workflows.NodeAnswer {
	answer := workflows.NodeAnswer{Known: true, Node: node.Name, Claim: node.Claim, NodePool: node.Pool, Managed: node.Managed(),
		Leaving: node.Deleting || node.Disrupted || node.Terminating, Replacement: node.Replacement}
	for i := range found.Commands {
		if command := &found.Commands[i]; slices.Contains(command.Nodes, node.Key()) {
			answer.Going = decision(node, command)
		}
	}
	for _, v := range found.Verdicts {
		if v.Node == node.Key() && answer.Managed {
			answer.Verdicts = append(answer.Verdicts, workflows.NodeVerdict{Reason: string(v.Reason), Cause: string(v.Cause), Message: v.Message, Until: v.Until})
		}
	}
	return answer
}

// maxOthers limits the nodes that are listed besides the one that was asked about.
const maxOthers = 20

func decision(node *plan.Node, command *plan.Command) *workflows.NodeDecision {
	decided := &workflows.NodeDecision{Reason: string(command.Reason), Why: command.Why}
	if command.Reason != karpv1.DisruptionReasonEmpty && command.Reason != plan.DisruptionReasonOverprovisioned {
		decided.SavesPerHour = command.SavesPerHour
		for _, other := range command.Nodes {
			if other != node.Key() && len(decided.Others) < maxOthers {
				decided.Others = append(decided.Others, other)
			}
		}
	}
	for i := range command.Replacements {
		if claim := &command.Replacements[i]; len(claim.InstanceTypes) > 0 && i < maxOthers {
			decided.Replacements = append(decided.Replacements, claim.CapacityType+" "+claim.InstanceTypes[0])
		}
	}
	return decided
}
