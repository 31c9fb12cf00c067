package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// orderer decides how nodes are replaced that a person has ordered to be replaced.
type orderer struct {
	mirror    Mirror
	seen      seen
	inputs    *inputs
	evaluator *evaluator
	log       *zap.Logger
}

// PlanReplacements decides how the nodes of an order are replaced. It changes nothing. It does not know what Disruption has
// begun and this mirror does not show yet: BeginReplacement, which reads the API server, refuses a node that somebody else
// removes.
func (o *orderer) PlanReplacements(ctx context.Context, in workflows.ReplacementOrderInput) (workflows.PlannedReplacements, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	if err := o.mirror.Fresh(freshEnough); err != nil {
		return workflows.PlannedReplacements{}, fmt.Errorf("plan replacements: %w", err)
	}
	snapshot := o.mirror.Snapshot()
	nodes := make(map[string]*plan.Node, len(snapshot.Nodes))
	for _, node := range snapshot.Nodes {
		nodes[node.Key()] = node
	}
	order := plan.ReplacementOrder{Launch: in.Launch, Grounds: grounds(in)}
	result := workflows.PlannedReplacements{ClusterUID: o.seen.clusterUID}
	for _, name := range in.Nodes {
		at := slices.IndexFunc(snapshot.Nodes, func(n *plan.Node) bool { return n.Name == name || n.Claim == name })
		if at < 0 {
			result.Kept = append(result.Kept, workflows.OrderObjection{Node: name, Cause: string(plan.CauseNone), Message: "the worker sees no such node"})
			continue
		}
		order.Nodes = append(order.Nodes, snapshot.Nodes[at].Key())
	}
	found := plan.Replace(o.inputs.of(ctx, snapshot, nil), order)
	result.Commands = o.evaluator.commands(ctx, plan.Disruption{Commands: found.Commands}, snapshot).Replacements
	result.Kept = append(result.Kept, objections(found.Kept, nodes)...)
	result.Despite = objections(found.Despite, nodes)
	logs.Of(ctx, o.log).Info("replacements ordered", zap.String("by", in.By), zap.Strings("nodes", in.Nodes), zap.Bool("dryRun", in.DryRun), zap.Int("replacements", len(result.Commands)),
		zap.Int("kept", len(result.Kept)))
	return result, nil
}

// grounds says who has ordered replacements and why.
func grounds(in workflows.ReplacementOrderInput) string {
	text := cmp.Or(in.By, "somebody") + " has ordered it"
	if in.Note != "" {
		text += " (" + in.Note + ")"
	}
	return text
}

func objections(verdicts []plan.Verdict, nodes map[string]*plan.Node) []workflows.OrderObjection {
	var all []workflows.OrderObjection
	for _, v := range verdicts {
		all = append(all, workflows.OrderObjection{Node: cmp.Or(nodes[v.Node].Name, v.Node), Cause: string(v.Cause), Message: v.Message})
	}
	return all
}
