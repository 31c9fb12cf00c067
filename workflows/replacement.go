package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

// The signals by which a Replacement tells Disruption how far it is. Both are facts that may be repeated or lost: a
// Replacement that Disruption has not heard of for long is asked for.
const (
	// SignalReplacementBegun carries a Begun: what the replacement does shows in the cluster from now on.
	SignalReplacementBegun = "replacement-begun"
	// SignalReplacementEnded carries an Ended.
	SignalReplacementEnded = "replacement-ended"
)

const (
	// StableFor is how long replacements have to serve before the nodes go. Karpenter waits as long, in its one loop.
	StableFor = 15 * time.Second
	// ReplacementPatience is how long what was launched may take to serve: RegistrationTimeout, by which a machine that
	// does not join is given up anyway, and as long again as a large node takes to become ready.
	ReplacementPatience = RegistrationTimeout + 5*time.Minute
	// readyPatience bounds how long moved pods are waited for.
	readyPatience = 10 * time.Minute
)

// The phases of a replacement, as the search attribute Phase shows them.
const (
	PhaseReplacing = "Replacing"
	PhaseUndone    = "Undone"
)

// ReplacementInput starts a Replacement.
type ReplacementInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is what it is in a LaunchInput.
	ClusterUID string `json:"clusterUID,omitempty"`
	Replace
	// Stable and Patience are for tests that cannot wait for StableFor and ReplacementPatience; zero means those.
	Stable   time.Duration `json:"stable,omitempty"`
	Patience time.Duration `json:"patience,omitempty"`
}

// BeginResult is what BeginReplacementActivity has made.
type BeginResult struct {
	Groups []LaunchGroup `json:"groups,omitempty"`
	// SeenVersion is the resource version of the newest claim. Whoever decides next must have seen it.
	SeenVersion string `json:"seenVersion,omitempty"`
}

// AwaitReplacementsInput asks to wait for claims until they serve.
type AwaitReplacementsInput struct {
	ID          string     `json:"id"`
	Claims      []ClaimRef `json:"claims"`
	SeenVersion string     `json:"seenVersion,omitempty"`
	Until       time.Time  `json:"until"`
}

// Awaited is how far the claims of a replacement have come; all of them serve where both are empty.
type Awaited struct {
	// Lost are claims that are gone or on their way out.
	Lost []string `json:"lost,omitempty"`
	// Late are claims that do not serve in time, and what they lack.
	Late []string `json:"late,omitempty"`
}

// PodOwner is a controller, and how many of its pods there were.
type PodOwner struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Pods      int    `json:"pods"`
}

// AwaitMovedInput asks to wait until moved pods are Ready elsewhere.
type AwaitMovedInput struct {
	Owners []PodOwner `json:"owners"`
	// Nodes are where the pods ran.
	Nodes []string  `json:"nodes"`
	Until time.Time `json:"until"`
}

// MovedPods says what is still missing when the waiting ends; empty where all are Ready.
type MovedPods struct {
	Missing string `json:"missing,omitempty"`
}

// UndoInput asks to take a replacement back.
type UndoInput struct {
	ID    string        `json:"id"`
	Nodes []RemovedNode `json:"nodes"`
	// Pools are the NodePools of the claims that were to be created, in their order.
	Pools []string `json:"pools,omitempty"`
	Why   string   `json:"why"`
}

// Undone is what was taken back.
type Undone struct {
	// Nodes serve on, Claims are deleted, and Kept are replacements that serve already and so stay until they are not
	// needed.
	Nodes  []string `json:"nodes,omitempty"`
	Claims []string `json:"claims,omitempty"`
	Kept   []string `json:"kept,omitempty"`
}

// Begun is what SignalReplacementBegun carries.
type Begun struct {
	ID          string `json:"id"`
	SeenVersion string `json:"seenVersion,omitempty"`
}

// Ended is what SignalReplacementEnded carries.
type Ended struct {
	ID string `json:"id"`
	// Undone is why nothing came of it; empty where the nodes go. Changed says that this is because the cluster was another
	// by the time it was to begin.
	Undone  string `json:"undone,omitempty"`
	Changed bool   `json:"changed,omitempty"`
	// Refused are offerings that had no capacity.
	Refused []cloud.OfferingKey `json:"refused,omitempty"`
}

// ReplacementResult is what a Replacement returns.
type ReplacementResult struct {
	// Retired are the claims that were deleted, Gone those that somebody else ended meanwhile.
	Retired []string `json:"retired,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	// Launched are the claims that replace them.
	Launched []string `json:"launched,omitempty"`
	// Undone is why it was taken back; empty where it was not.
	Undone string `json:"undone,omitempty"`
	// TakenBack is what that meant.
	TakenBack Undone `json:"takenBack,omitzero"`
}

// Replacement carries one decision out: it marks the nodes, launches what replaces them, waits until that serves and has
// served for a while, looks once more whether the nodes may go, and deletes their claims, whose workflows drain and
// terminate them. Whatever goes wrong before that is taken back, and so is everything when a person cancels it.
func Replacement(ctx workflow.Context, in ReplacementInput) (ReplacementResult, error) {
	r := replacement{ReplacementInput: in}
	failure := r.replace(ctx)
	// What is left to do has to be done whether or not somebody has cancelled the workflow.
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

// replace goes forward, step by step, and returns why it could not.
func (r *replacement) replace(ctx workflow.Context) (failure string) {
	for _, step := range []func(workflow.Context) string{r.begin, r.launch, r.await, r.settle, r.retire, r.awaitMoved} {
		if failure := step(ctx); failure != "" {
			return failure
		}
	}
	return ""
}

// failed says in words why a step failed; a workflow that a person has cancelled fails for no other reason.
func failed(ctx workflow.Context, doing string, err error) string {
	if ctx.Err() != nil {
		return "it was cancelled"
	}
	return doing + ": " + message(err)
}

// begin marks the nodes and creates the claims, and tells Disruption that it may look at the cluster again.
func (r *replacement) begin(ctx workflow.Context) string {
	r.describe(ctx, "Marking the nodes and creating claims.")
	begun, err := BeginReplacementActivity.Run(ctx, r.Replace, fmt.Sprintf("mark %d nodes, create %d claims", len(r.Nodes), len(r.Claims)))
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

// launched are the claims of all groups.
func (r *replacement) launched() []ClaimRef {
	var claims []ClaimRef
	for _, group := range r.begun.Groups {
		claims = append(claims, group.Claims...)
	}
	return claims
}

// launch has every group launched, and waits for what became of it. A Launch goes on when the replacement is cancelled:
// nobody could tell otherwise whether it had got as far as the cloud.
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
		// A Launch that somebody else started, or that was terminated, says nothing; the claims will tell.
		if err := launch.Get(ctx, &out); err == nil && out.Released > 0 {
			r.refused = append(r.refused, out.Refused...)
			failure = fmt.Sprintf("%d replacements could not be launched: %s", out.Released, out.Reason)
		}
	}
	return failure
}

// await waits until everything that was launched serves.
func (r *replacement) await(ctx workflow.Context) string {
	claims := r.launched()
	if len(claims) == 0 {
		return ""
	}
	until := workflow.Now(ctx).Add(orElse(r.Patience, ReplacementPatience))
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

// settle lets the cluster come to rest before the nodes are looked at once more.
func (r *replacement) settle(ctx workflow.Context) string {
	stable := orElse(r.Stable, StableFor)
	r.describe(ctx, "Waiting "+stable.String()+" before the nodes go.")
	if err := workflow.NewTimerWithOptions(ctx, stable, workflow.TimerOptions{Summary: "stable"}).Get(ctx, nil); err != nil {
		return failed(ctx, "it was interrupted", err)
	}
	return ""
}

// awaitMoved waits until the pods that had to move are Ready elsewhere, where the NodePool asks for it. Nothing can be
// taken back any more, so it fails for nothing.
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

// undo takes everything back and says why.
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

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
