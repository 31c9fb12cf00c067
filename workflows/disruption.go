package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

const (
	// leavingFor is how long a removed node counts as leaving, whatever the mirror shows. It is longer than the age of any
	// mirror that may be acted upon.
	leavingFor = 30 * time.Second
	// heldFirst and maxHeldFor limit how long a node is left alone after a replacement of it was undone. Each time doubles
	// it.
	heldFirst, maxHeldFor = time.Minute, 10 * time.Minute
	// maxHeld limits the held nodes that are remembered, so that the state stays far below the payload limits.
	maxHeld = 500
	// maxWhy limits a remembered explanation, in characters.
	maxWhy = 200
)

// Disruption removes nodes that are no longer needed, for ever. It wakes when something changes, or when a node that had to
// stay may be removed, and never by a fixed clock; with nothing to do it costs nothing. It decides, and does not wait for
// the replacements it has decided on: the next evaluation follows as soon as the cluster shows what the last one has begun.
func Disruption(ctx workflow.Context, state DisruptionInput) error {
	d := disruption{DisruptionInput: state, changes: workflow.GetSignalChannel(ctx, SignalEvaluate),
		begun: workflow.GetSignalChannel(ctx, SignalReplacementBegun), ended: workflow.GetSignalChannel(ctx, SignalReplacementEnded),
		refused: workflow.GetSignalChannel(ctx, SignalCapacityRefused)}
	if d.Series == "" {
		d.Series = newSeries(ctx)
	}
	if err := d.listen(ctx); err != nil {
		return err
	}
	return forEver(ctx, &d)
}

type disruption struct {
	DisruptionInput
	changes, begun, ended, refused workflow.ReceiveChannel
}

func (d *disruption) again(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, Disruption, d.DisruptionInput)
}

// receive moves every received signal into the state.
func (d *disruption) receive(ctx workflow.Context) {
	for d.changes.ReceiveAsync(nil) {
		d.Pending = true
	}
	var begun Begun
	for d.begun.ReceiveAsync(&begun) {
		d.see(begun.SeenVersion)
		begun = Begun{}
	}
	var refused CapacityRefused
	for d.refused.ReceiveAsync(&refused) {
		d.shun(refused.Refused, workflow.Now(ctx))
		refused = CapacityRefused{}
	}
	var ended Ended
	for d.ended.ReceiveAsync(&ended) {
		d.end(ctx, ended)
		ended = Ended{}
	}
}

// wait returns when something has changed or the next look is due.
func (d *disruption) wait(ctx workflow.Context) error {
	woken := func() bool {
		d.receive(ctx)
		return d.Pending || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
	}
	if d.NextLook.IsZero() {
		return workflow.Await(ctx, woken)
	}
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: max(d.NextLook.Sub(workflow.Now(ctx)), 0),
		TimerOptions: workflow.TimerOptions{Summary: "next look"}}, woken)
	return err
}

// act runs one evaluation and carries out its decisions.
func (d *disruption) act(ctx workflow.Context) error {
	d.Pending = false
	d.forget(workflow.Now(ctx))
	found, err := EvaluateActivity.Run(ctx, d.evaluateInput(), "which nodes are not needed")
	if err != nil {
		return err
	}
	d.Pending, d.NextLook, d.Last, d.Disrupted = found.Again, found.NextLook, found.Note, found.Begun(workflow.Now(ctx))
	if found.Anew {
		d.SeenVersion = ""
	}
	if found.ClusterUID != "" {
		d.ClusterUID = found.ClusterUID
	}
	d.Running = slices.DeleteFunc(d.Running, func(r Running) bool { return slices.Contains(found.Over, r.ID) })
	removals := make([]workflow.Future, 0, len(found.Commands))
	for _, command := range found.Commands {
		removals = append(removals, RemoveActivity.Start(ctx, command, fmt.Sprintf("remove %d nodes: %s", len(command.Nodes), command.Reason)))
	}
	if err := d.replace(ctx, found.Replacements); err != nil {
		return err
	}
	for i, removal := range removals {
		var result RemovalResult
		if err := removal.Get(ctx, &result); err != nil {
			return err
		}
		for _, node := range found.Commands[i].Nodes {
			d.Leaving = append(d.Leaving, Leaving{Claim: node.Claim.Name, Until: workflow.Now(ctx).Add(leavingFor)})
		}
		for _, kept := range result.Kept {
			d.Last += "\n- kept: " + kept
		}
	}
	return nil
}

// replace starts a Replacement for each decision and returns when all have begun, or have failed to.
func (d *disruption) replace(ctx workflow.Context, decided []ReplacementCommand) error {
	if len(decided) == 0 {
		return nil
	}
	d.Round++
	waiting := map[string]workflow.ChildWorkflowFuture{}
	started := make([]workflow.Future, 0, len(decided))
	for i, command := range decided {
		command.ID = fmt.Sprintf("r%.8s-%d-%d", d.Series, d.Round, i)
		in := ReplacementInput{Cluster: d.Cluster, ClusterUID: d.ClusterUID, ReplacementCommand: command}
		child := workflow.ExecuteChildWorkflow(ReplacementOptions(in).child(ctx), Replacement, in)
		started, waiting[command.ID] = append(started, child.GetChildWorkflowExecution()), child
		d.Running = append(d.Running, Running{ID: command.ID, Claims: command.claimNames(), Pools: command.pools(), WaitForReady: command.WaitForReady})
	}
	for _, child := range started {
		if err := child.Get(ctx, nil); err != nil && !alreadyStarted(err) {
			return fmt.Errorf("start replacement: %w", err)
		}
	}
	return workflow.Await(ctx, func() bool {
		var begun Begun
		for d.begun.ReceiveAsync(&begun) {
			d.see(begun.SeenVersion)
			delete(waiting, begun.ID)
			begun = Begun{}
		}
		d.receive(ctx)
		for _, running := range d.Running {
			// A replacement that is over, for whatever reason, will not begin any more.
			if child := waiting[running.ID]; child != nil && child.IsReady() {
				delete(waiting, running.ID)
			}
		}
		return !slices.ContainsFunc(d.Running, func(r Running) bool { return waiting[r.ID] != nil })
	})
}

// see records the newest resource version that the next evaluation must have seen.
func (d *disruption) see(version string) { d.SeenVersion = NewerVersion(d.SeenVersion, version) }

// end records that a replacement is over. If it was undone, its nodes are left alone for a while. After a lack of capacity,
// they are left alone only from the second time on, since other offerings may have some; likewise if the cluster had changed
// before the replacement began.
func (d *disruption) end(ctx workflow.Context, ended Ended) {
	now := workflow.Now(ctx)
	at := slices.IndexFunc(d.Running, func(r Running) bool { return r.ID == ended.ID })
	if at < 0 {
		return
	}
	running := d.Running[at]
	d.Running = slices.Delete(d.Running, at, at+1)
	// Other nodes of its NodePools may have waited for it, and nothing else announces that they need not any more.
	d.Pending = d.Pending || running.WaitForReady || len(ended.Refused) > 0 || ended.Changed
	d.shun(ended.Refused, now)
	if ended.Undone == "" {
		return
	}
	for _, claim := range running.Claims {
		held := d.hold(claim, ended.Undone, now)
		if held.Times == 1 && (len(ended.Refused) > 0 || ended.Changed) {
			held.Until = now
		}
	}
}

// shun leaves offerings alone for UnavailableFor.
func (d *disruption) shun(keys []cloud.OfferingKey, now time.Time) {
	for _, key := range keys {
		d.Unavailable = append(d.Unavailable, Unavailable{OfferingKey: key, Until: now.Add(UnavailableFor)})
	}
	if over := len(d.Unavailable) - maxUnavailable; over > 0 {
		d.Unavailable = d.Unavailable[over:]
	}
}

// hold leaves a node alone, longer each time. It returns the entry it remembers.
func (d *disruption) hold(claim, why string, now time.Time) *Held {
	held := Held{Claim: claim, Times: 1, Why: fmt.Sprintf("a replacement of it was just taken back: %.*s", maxWhy, why)}
	if at := slices.IndexFunc(d.Held, func(h Held) bool { return h.Claim == claim }); at >= 0 {
		held.Times = d.Held[at].Times + 1
		d.Held = slices.Delete(d.Held, at, at+1)
	}
	held.Until = now.Add(min(heldFirst<<min(held.Times-1, 8), maxHeldFor))
	d.Held = append(d.Held, held)
	if over := len(d.Held) - maxHeld; over > 0 {
		d.Held = d.Held[over:]
	}
	return &d.Held[len(d.Held)-1]
}

// forget drops what no longer matters. A held node is remembered for maxHeldFor longer, so that the next time counts as one
// more.
func (d *disruption) forget(now time.Time) {
	d.Leaving = slices.DeleteFunc(d.Leaving, func(l Leaving) bool { return !l.Until.After(now) })
	d.Unavailable = slices.DeleteFunc(d.Unavailable, func(u Unavailable) bool { return !u.Until.After(now) })
	d.Held = slices.DeleteFunc(d.Held, func(h Held) bool { return !h.Until.Add(maxHeldFor).After(now) })
}

// details describes what is under way, and what the last evaluation found.
func (d *disruption) details() string {
	details := "Waiting for a change.\n"
	if !d.NextLook.IsZero() {
		details = "Next look at " + d.NextLook.UTC().Format(time.RFC3339) + ", or after a change.\n"
	}
	if len(d.Running) > 0 {
		details += fmt.Sprintf("\n%d replacements are under way:\n", len(d.Running))
		for i, running := range d.Running {
			if i == runningShown {
				details += fmt.Sprintf("\n- and %d more", len(d.Running)-runningShown)
				break
			}
			details += "\n- " + d.Cluster.ReplacementID(running.ID) + ": " + listed(running.Claims)
		}
		details += "\n"
	}
	if d.Last != "" {
		details += "\n**Last evaluation**\n\n" + d.Last + "\n"
	}
	return details
}

// runningShown is how many replacements the details list.
const runningShown = 20
