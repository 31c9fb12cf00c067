package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

const (
	// retirePatience is how long a PodDisruptionBudget may block the nodes once their replacements serve. Concurrent
	// replacements that move pods of the same budget wait for one another here. A lack of room may block the nodes for only
	// noRoomLooks looks: the pods that took the room stay, and old and new nodes are paid for meanwhile.
	retirePatience = 10 * time.Minute
	noRoomLooks    = 2
	// closedLooks is the number of looks for which the replacements are reserved for the pods they were launched for.
	closedLooks = 2
	// lateFor is how long, after the old nodes' claims are deleted, replacements for small pods stay closed to other pods:
	// until the large pods have found room, and before the small ones are evicted.
	lateFor = 5 * time.Second
	// retireAgainFirst and maxRetireAgain limit the pauses between two looks whether the nodes may be removed.
	retireAgainFirst, maxRetireAgain = 10 * time.Second, time.Minute
)

// retire removes the nodes, and waits for blockers that are only temporary.
func (r *replacement) retire(ctx workflow.Context) string {
	until := workflow.Now(ctx).Add(retirePatience)
	pause, nodes, closed := retireAgainFirst, r.Nodes, r.SmallPodsOnly
	for look := 1; ; look++ {
		closed = closed && look <= closedLooks
		result, err := RetireActivity.Run(ctx, RetireInput{ID: r.ID, Reason: r.Reason, Why: r.Why, Nodes: nodes, Independent: r.Independent, Claims: r.launched(),
			Owners: r.WaitForReady, Open: look > closedLooks, KeepTainted: closed}, fmt.Sprintf("let %d nodes go: %s", len(nodes), r.Reason))
		if err != nil {
			return failed(ctx, "the nodes could not be let go", err)
		}
		if r.Independent {
			// Nodes that are already removed are not asked about again.
			nodes, result.Retired, result.Gone = result.Left, append(r.result.Retired, result.Retired...), append(r.result.Gone, result.Gone...)
		}
		r.result.Retired, r.result.Gone = result.Retired, result.Gone
		if closed && len(result.Retired)+len(result.Gone) > 0 {
			closed = false
			if err := r.open(ctx); err != nil {
				return failed(ctx, "what was launched could not be opened", err)
			}
		}
		switch {
		case len(result.Blocked) == 0:
			r.describe(ctx, "The nodes are drained and terminated by the workflows of their claims.")
			r.owners = result.Owners
			return ""
		case result.ForGood || result.NoRoom && look >= noRoomLooks || !workflow.Now(ctx).Before(until):
			return listed(result.Blocked)
		}
		r.describe(ctx, "The nodes have to stay for now: "+listed(result.Blocked)+".")
		if err := workflow.NewTimerWithOptions(ctx, pause, workflow.TimerOptions{Summary: "look again"}).Get(ctx, nil); err != nil {
			return failed(ctx, "it was interrupted", err)
		}
		pause = min(2*pause, maxRetireAgain)
	}
}

// open lets the replacements take pods, once the large pods of the removed nodes have found room.
func (r *replacement) open(ctx workflow.Context) error {
	r.describe(ctx, "The nodes go. What was launched takes their small pods when the large ones have found room.")
	// The replacements are opened even if somebody cancels the rest: the old nodes are being removed.
	rest, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if err := workflow.NewTimerWithOptions(rest, lateFor, workflow.TimerOptions{Summary: "large pods first"}).Get(rest, nil); err != nil {
		return err
	}
	_, err := RetireActivity.Run(rest, RetireInput{ID: r.ID, Reason: r.Reason, Claims: r.launched()}, "open what was launched")
	return err
}
