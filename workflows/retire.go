package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

const (
	// retirePatience is how long a PodDisruptionBudget may keep the nodes once their replacements serve. Several
	// replacements at once wait for one another here, where they move pods of the same budget. A lack of room may keep
	// them for noRoomLooks looks only: what came in between stays, and old and new nodes are paid for meanwhile.
	retirePatience = 10 * time.Minute
	noRoomLooks    = 2
	// closedLooks is for how many looks the replacements are kept for the pods they were bought for.
	closedLooks = 2
	// lateFor is how long after the nodes are let go what was launched for their small pods is kept from others: until the
	// large ones have found room, and before the small ones are evicted.
	lateFor = 5 * time.Second
	// retireAgainFirst and maxRetireAgain bound the pauses between two looks whether the nodes may go.
	retireAgainFirst, maxRetireAgain = 10 * time.Second, time.Minute
)

// retire lets the nodes go. What keeps them only for a while is waited for.
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
			// Those that went are not asked about again.
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

// open has what was launched take pods, once the large pods of the nodes that go have found room.
func (r *replacement) open(ctx workflow.Context) error {
	r.describe(ctx, "The nodes go. What was launched takes their small pods when the large ones have found room.")
	// What was launched is opened even if somebody cancels the rest: the nodes are going.
	rest, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if err := workflow.NewTimerWithOptions(rest, lateFor, workflow.TimerOptions{Summary: "large pods first"}).Get(rest, nil); err != nil {
		return err
	}
	_, err := RetireActivity.Run(rest, RetireInput{ID: r.ID, Reason: r.Reason, Claims: r.launched()}, "open what was launched")
	return err
}
