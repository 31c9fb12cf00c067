package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

const (
	// StableFor is how long replacements have to serve before the nodes are removed. Karpenter waits as long, in its one
	// loop.
	StableFor = 15 * time.Second
	// ReplacementPatience is how long launched nodes may take to serve: RegistrationTimeout, after which a machine that has
	// not joined is given up anyway, plus the time that a large node takes to become ready.
	ReplacementPatience = RegistrationTimeout + 5*time.Minute
	// readyPatience limits how long a replacement waits for moved pods.
	readyPatience = 10 * time.Minute
)

// Replacement carries out one decision: it marks the nodes, launches their replacements, waits until those serve and have
// served for a while, checks once more that the nodes may be removed, and deletes their claims, whose workflows drain and
// terminate them. If anything goes wrong before that, or a person cancels it, everything is undone.
func Replacement(ctx workflow.Context, in ReplacementInput) (ReplacementResult, error) {
	r := replacement{ReplacementInput: in}
	failure := r.replace(ctx)
	// The rest must be done even if somebody has cancelled the workflow.
	rest, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if failure != "" {
		if err := r.undo(rest, failure); err != nil {
			return r.result, err
		}
	}
	ended := Ended{ID: r.ID, Undone: failure, Changed: r.changed, Refused: r.refused}
	_ = workflow.SignalExternalWorkflow(rest, r.Cluster.DisruptionID(), "", SignalReplacementEnded, ended).Get(rest, nil)
	return r.result, ctx.Err()
}

type replacement struct {
	ReplacementInput
	begun   BeginResult
	refused []cloud.OfferingKey
	changed bool
	owners  []PodOwner
	result  ReplacementResult
}

// replace runs the steps in order. It returns why one failed, or "".
func (r *replacement) replace(ctx workflow.Context) (failure string) {
	for _, step := range []func(workflow.Context) string{r.begin, r.launch, r.await, r.settle, r.retire, r.awaitMoved} {
		if failure := step(ctx); failure != "" {
			return failure
		}
	}
	return ""
}

// failed says in words why a step failed. If a person has cancelled the workflow, that is the reason.
func failed(ctx workflow.Context, doing string, err error) string {
	if ctx.Err() != nil {
		return "it was cancelled"
	}
	return doing + ": " + message(err)
}

// begin marks the nodes and creates the claims, and tells Disruption that it may look at the cluster again.
func (r *replacement) begin(ctx workflow.Context) string {
	r.describe(ctx, "Marking the nodes and creating claims.")
	begun, err := BeginReplacementActivity.Run(ctx, r.ReplacementCommand, fmt.Sprintf("mark %d nodes, create %d claims", len(r.Nodes), len(r.Claims)))
	if err != nil {
		r.changed = FailureType(err) == FailureChanged
		return failed(ctx, "it could not begin", err)
	}
	r.begun = begun
	for _, claim := range r.launched() {
		r.result.Launched = append(r.result.Launched, claim.Name)
	}
	// Disruption may have been terminated; the replacement does not depend on it.
	_ = workflow.SignalExternalWorkflow(ctx, r.Cluster.DisruptionID(), "", SignalReplacementBegun, Begun{ID: r.ID, SeenVersion: begun.SeenVersion}).Get(ctx, nil)
	return ""
}

// launched returns the claims of all groups.
func (r *replacement) launched() []ClaimRef {
	var claims []ClaimRef
	for _, group := range r.begun.Groups {
		claims = append(claims, group.Claims...)
	}
	return claims
}

// launch launches every group and waits for the results. A Launch goes on when the replacement is cancelled, because nobody
// could tell otherwise whether it had reached the cloud.
func (r *replacement) launch(ctx workflow.Context) string {
	if len(r.begun.Groups) == 0 {
		return ""
	}
	r.describe(ctx, "Launching.")
	apart, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	launches := make([]workflow.ChildWorkflowFuture, 0, len(r.begun.Groups))
	for _, group := range r.begun.Groups {
		options := LaunchOptions(r.Cluster, group)
		options.Priority = priorityTidying
		launches = append(launches, workflow.ExecuteChildWorkflow(options.child(apart), Launch, LaunchInput{Cluster: r.Cluster, ClusterUID: r.ClusterUID, LaunchGroup: group}))
	}
	over := func() bool {
		return !slices.ContainsFunc(launches, func(launch workflow.ChildWorkflowFuture) bool { return !launch.IsReady() })
	}
	if err := workflow.Await(ctx, over); err != nil {
		return failed(ctx, "it was interrupted", err)
	}
	failure := ""
	for _, launch := range launches {
		var out LaunchOutcome
		// A Launch that somebody else started, or that was terminated, has no result here; the claims will tell.
		if err := launch.Get(ctx, &out); err == nil && out.Released > 0 {
			r.refused = append(r.refused, out.Refused...)
			failure = fmt.Sprintf("%d replacements could not be launched: %s", out.Released, out.Reason)
		}
	}
	return failure
}

// await waits until all launched nodes serve.
func (r *replacement) await(ctx workflow.Context) string {
	claims := r.launched()
	if len(claims) == 0 {
		return ""
	}
	until := workflow.Now(ctx).Add(ReplacementPatience)
	r.describe(ctx, "Waiting until what was launched serves, at the latest until "+until.UTC().Format(time.RFC3339)+".")
	awaited, err := AwaitReplacementsActivity.Run(ctx, AwaitReplacementsInput{ID: r.ID, Claims: claims, SeenVersion: r.begun.SeenVersion, Until: until},
		fmt.Sprintf("until %d replacements serve", len(claims)))
	switch {
	case err != nil:
		return failed(ctx, "the replacements could not be waited for", err)
	case len(awaited.Lost) > 0:
		return "replacements are gone: " + listed(awaited.Lost)
	case len(awaited.Late) > 0:
		return "replacements did not serve in time: " + listed(awaited.Late)
	}
	return ""
}

// settle lets the cluster come to rest before the nodes are checked once more.
func (r *replacement) settle(ctx workflow.Context) string {
	r.describe(ctx, "Waiting "+StableFor.String()+" before the nodes go.")
	if err := workflow.NewTimerWithOptions(ctx, StableFor, workflow.TimerOptions{Summary: "stable"}).Get(ctx, nil); err != nil {
		return failed(ctx, "it was interrupted", err)
	}
	return ""
}

// awaitMoved waits until the pods that had to move are Ready elsewhere, if the NodePool asks for that. Nothing can be undone
// any more, so it never fails.
func (r *replacement) awaitMoved(ctx workflow.Context) string {
	if len(r.owners) == 0 {
		return ""
	}
	r.describe(ctx, "Waiting until the moved pods are Ready.")
	names := make([]string, 0, len(r.Nodes))
	for _, node := range r.Nodes {
		names = append(names, node.Node)
	}
	moved, err := AwaitMovedActivity.Run(ctx, AwaitMovedInput{Owners: r.owners, Nodes: names, Until: workflow.Now(ctx).Add(readyPatience)}, "until the moved pods are Ready")
	switch {
	case err != nil:
		r.describe(ctx, "The nodes are gone or going; the moved pods were not waited for: "+failed(ctx, "interrupted", err)+".")
	case moved.Missing != "":
		r.describe(ctx, "The nodes are gone or going; not all moved pods became Ready in time: "+moved.Missing+".")
	default:
		r.describe(ctx, "The moved pods are Ready.")
	}
	return ""
}

// undo undoes the replacement and records why.
func (r *replacement) undo(ctx workflow.Context, why string) error {
	r.result.Undone = why
	r.describe(ctx, "Taking it back: "+why+".")
	undone, err := UndoReplacementActivity.Run(ctx, UndoInput{ID: r.ID, Nodes: r.Nodes, Pools: r.claimPools(), Why: why}, "take it back")
	if err != nil {
		return err
	}
	r.result.TakenBack = undone
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPhase.ValueSet(PhaseUndone)); err != nil {
		return fmt.Errorf("show phase: %w", err)
	}
	r.describe(ctx, "Taken back: "+why+".")
	return nil
}
