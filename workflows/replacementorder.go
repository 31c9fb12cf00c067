package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// ReplacementOrder carries out a person's order to replace nodes: it has a worker decide how, and starts a Replacement for
// each decision, which goes on by itself. It is a workflow of its own rather than an update of Disruption, so that a build
// that does not know orders leaves them alone and goes on deciding.
func ReplacementOrder(ctx workflow.Context, in ReplacementOrderInput) (ReplacementOrderResult, error) {
	var result ReplacementOrderResult
	workflow.SetCurrentDetails(ctx, "Deciding how "+listed(in.Nodes)+" are replaced.")
	planned, err := PlanReplacementsActivity.Run(ctx, in, fmt.Sprintf("how %d nodes are replaced", len(in.Nodes)))
	if err != nil {
		return result, err
	}
	result.Kept, result.Despite = planned.Kept, planned.Despite
	series := newSeries(ctx)
	started := make([]workflow.Future, 0, len(planned.Commands))
	for i, command := range planned.Commands {
		if !in.DryRun {
			command.ID = fmt.Sprintf("o%.8s-%d", series, i)
			replace := ReplacementInput{Cluster: in.Cluster, ClusterUID: planned.ClusterUID, ReplacementCommand: command}
			child := workflow.ExecuteChildWorkflow(ReplacementOptions(replace).child(ctx), Replacement, replace)
			started = append(started, child.GetChildWorkflowExecution())
		}
		result.Replacements = append(result.Replacements, OrderedReplacement{ID: command.ID, Nodes: command.Nodes, Launches: command.launches(), Moves: command.Moves, Why: command.Why})
	}
	for _, child := range started {
		if err := child.Get(ctx, nil); err != nil && !alreadyStarted(err) {
			return result, fmt.Errorf("start replacement: %w", err)
		}
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d replacements begin, %d nodes stay.", len(result.Replacements), len(result.Kept)))
	return result, nil
}

// launches says what a command launches, each with the first of its instance types.
func (r *ReplacementCommand) launches() []string {
	var all []string
	for i := range r.Claims {
		claim := &r.Claims[i]
		text := claim.CapacityType
		if len(claim.InstanceTypes) > 0 {
			text += " " + claim.InstanceTypes[0]
		}
		all = append(all, text)
	}
	return all
}
