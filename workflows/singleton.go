package workflows

import "go.temporal.io/sdk/workflow"

// singleton is one of the two workflows of a cluster that run for ever. It keeps its state in one struct, which is its input
// when it continues as new.
type singleton interface {
	// details returns what the Temporal UI shows of the workflow, in Markdown.
	details() string
	// wait returns when there may be something to do, or when Temporal suggests to continue as new.
	wait(ctx workflow.Context) error
	// receive moves every buffered signal into the state, so that none is lost when the workflow continues as new.
	receive(ctx workflow.Context)
	// act does what there is to do.
	act(ctx workflow.Context) error
	// again returns the error that continues the workflow as new.
	again(ctx workflow.Context) error
}

// forEver runs a singleton. It returns when the history is long enough, and the next run continues with its state.
func forEver(ctx workflow.Context, s singleton) error {
	for {
		workflow.SetCurrentDetails(ctx, s.details())
		if err := s.wait(ctx); err != nil {
			return err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			// Running updates are answered first.
			if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
				return err
			}
			s.receive(ctx)
			return s.again(ctx)
		}
		if err := s.act(ctx); err != nil {
			return err
		}
	}
}
