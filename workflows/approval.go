package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

// remindAfter is how long after an approval began to wait people are reminded; from then on every remindEvery.
var remindAfter = []time.Duration{time.Hour, 6 * time.Hour}

const remindEvery = 24 * time.Hour

// nobodyKnown is the author of a decision that came by a signal.
const nobodyKnown = "unknown (signal)"

// Approval waits until a person has decided about a proposal, until it expires, or until it no longer holds. It carries nothing
// out: it writes the decision onto the NodeClaims, where the planner reads it, so that a decision of Disruption is the only
// thing that removes a node. While it waits it has one timer.
func Approval(ctx workflow.Context, in ApprovalInput) (ApprovalResult, error) {
	a := approval{ApprovalInput: in, since: workflow.GetInfo(ctx).WorkflowStartTime,
		approve: workflow.GetSignalChannel(ctx, SignalApprove), reject: workflow.GetSignalChannel(ctx, SignalReject), withdraw: workflow.GetSignalChannel(ctx, SignalWithdraw)}
	a.until = a.since.Add(time.Duration(in.Expires) * time.Second)
	if err := a.listen(ctx); err != nil {
		return ApprovalResult{}, err
	}
	for reminder := 0; ; reminder++ {
		if err := a.ask(ctx, reminder); err != nil {
			return ApprovalResult{}, err
		}
		if a.wait(ctx, a.told(reminder)); a.result.Outcome != "" {
			break
		}
	}
	// What was decided has to be written down even if somebody has cancelled the workflow.
	rest, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if err := a.settle(rest); err != nil {
		return a.result, err
	}
	if err := workflow.Await(rest, func() bool { return workflow.AllHandlersFinished(rest) }); err != nil {
		return a.result, err
	}
	return a.result, ctx.Err()
}

type approval struct {
	ApprovalInput
	approve, reject, withdraw workflow.ReceiveChannel
	since, until              time.Time
	// result is what was decided; settled says that it is written down. rejectedFor is how long a rejection holds.
	result      ApprovalResult
	rejectedFor time.Duration
	settled     bool
}

// listen registers the update by which people decide.
func (a *approval) listen(ctx workflow.Context) error {
	decide := func(ctx workflow.Context, decision ApprovalDecision) (ApprovalResult, error) {
		if a.result.Outcome == "" {
			a.decide(decision)
		}
		err := workflow.Await(ctx, func() bool { return a.settled })
		return a.result, err
	}
	validate := func(decision ApprovalDecision) error {
		switch {
		case a.result.Outcome != "":
			return fmt.Errorf("it is %s already", strings.ToLower(a.result.Outcome))
		case decision.For < 0:
			return errors.New("for: must not be negative")
		}
		return nil
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateDecide, decide, workflow.UpdateHandlerOptions{Validator: validate}); err != nil {
		return fmt.Errorf("register update %s: %w", UpdateDecide, err)
	}
	return nil
}

// decide records a person's decision.
func (a *approval) decide(decision ApprovalDecision) {
	a.result = ApprovalResult{Outcome: ApprovalRejected, By: decision.By, Why: decision.Note}
	if decision.Approve {
		a.result.Outcome = ApprovalApproved
	}
	a.rejectedFor = RejectedFor
	if decision.For > 0 {
		a.rejectedFor = time.Duration(decision.For) * time.Second
	}
}

// receive takes what was signalled. A person's decision counts before a withdrawal: it is checked in any case.
func (a *approval) receive() {
	for _, signal := range []struct {
		from    workflow.ReceiveChannel
		approve bool
	}{{a.reject, false}, {a.approve, true}} {
		var said any
		if a.result.Outcome == "" && signal.from.ReceiveAsync(&said) {
			a.decide(ApprovalDecision{Approve: signal.approve, By: nobodyKnown, Note: noteIn(said)})
		}
	}
	var why string
	if a.result.Outcome == "" && a.withdraw.ReceiveAsync(&why) {
		a.result = ApprovalResult{Outcome: ApprovalOutdated, Why: why}
	}
}

// noteIn returns the note in what somebody typed for a signal: a text, or the field note of an object.
func noteIn(said any) string {
	switch said := said.(type) {
	case string:
		return said
	case map[string]any:
		note, _ := said["note"].(string)
		return note
	}
	return ""
}

// ask marks the nodes as waiting, and tells people.
func (a *approval) ask(ctx workflow.Context, reminder int) error {
	summary := "ask for approval"
	if reminder > 0 {
		summary = "remind people"
	}
	a.describe(ctx, fmt.Sprintf("Waits for approval since %s, until %s.", a.since.UTC().Format(time.RFC3339), a.until.UTC().Format(time.RFC3339)))
	checked, err := AskApprovalActivity.Run(ctx, AskApprovalInput{Proposal: a.Proposal, Since: a.since, Until: a.until, Reminder: reminder}, summary)
	if err != nil && ctx.Err() == nil { // wait sees that the workflow was cancelled
		return err
	}
	if checked.Outdated != "" && a.result.Outcome == "" {
		a.result = ApprovalResult{Outcome: ApprovalOutdated, Why: checked.Outdated}
	}
	return nil
}

// told returns when people are told next, after as many reminders.
func (a *approval) told(reminders int) time.Time {
	if reminders < len(remindAfter) {
		return a.since.Add(remindAfter[reminders])
	}
	return a.since.Add(time.Duration(reminders-len(remindAfter)+1) * remindEvery)
}

// wait returns when something is decided, when the approval expires, or when people are to be reminded.
func (a *approval) wait(ctx workflow.Context, remind time.Time) {
	next, summary := a.until, "expires"
	if remind.Before(next) {
		next, summary = remind, "reminder"
	}
	decided, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: max(next.Sub(workflow.Now(ctx)), 0), TimerOptions: workflow.TimerOptions{Summary: summary}},
		func() bool {
			a.receive()
			return a.result.Outcome != ""
		})
	switch {
	case err != nil && a.result.Outcome == "":
		a.decide(ApprovalDecision{By: "unknown (cancelled)", Note: "the workflow was cancelled"})
	case !decided && a.result.Outcome == "" && !workflow.Now(ctx).Before(a.until):
		a.result = ApprovalResult{Outcome: ApprovalExpired}
	}
}

// settle writes down what was decided. An approval whose decision no longer holds becomes outdated.
func (a *approval) settle(ctx workflow.Context) error {
	now := workflow.Now(ctx)
	in := SettleApprovalInput{Proposal: a.Proposal, ApprovalResult: a.result, At: now}
	switch a.result.Outcome {
	case ApprovalApproved:
		in.Until = now.Add(a.until.Sub(a.since))
	case ApprovalRejected:
		in.Until = now.Add(a.rejectedFor)
	}
	checked, err := SettleApprovalActivity.Run(ctx, in, "write down: "+strings.ToLower(a.result.Outcome))
	if err != nil {
		return err
	}
	if checked.Outdated != "" {
		a.result.Outcome, a.result.Why = ApprovalOutdated, checked.Outdated
	}
	a.settled = true
	state := a.result.Outcome
	if a.result.By != "" {
		state += " by " + a.result.By
	}
	if a.result.Why != "" {
		state += ": " + a.result.Why
	}
	a.describe(ctx, state+".")
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPhase.ValueSet(PhaseDecided)); err != nil {
		return fmt.Errorf("show phase: %w", err)
	}
	return nil
}

// describe shows in the Temporal UI what waits for approval, and how to decide.
func (a *approval) describe(ctx workflow.Context, state string) {
	text := fmt.Sprintf("%s\n\n**%s**: %s\n\n%d pods move. ", state, a.Reason, a.Does, a.Moves)
	if a.SavesPerHour >= 0 {
		text += fmt.Sprintf("It saves %s/h.\n", cloud.Money(a.Zone, a.SavesPerHour))
	} else {
		text += fmt.Sprintf("It costs %s/h.\n", cloud.Money(a.Zone, -a.SavesPerHour))
	}
	text += "\n| Goes | Node | NodePool |\n|---|---|---|\n"
	for _, node := range a.Nodes {
		text += fmt.Sprintf("| %s | %s | %s |\n", node.Claim.Name, node.Node, orNone(node.NodePool))
	}
	if a.result.Outcome == "" {
		text += fmt.Sprintf("\n`tenon approve %s` or `tenon reject %s --reason TEXT`. Or send signal `%s` or `%s` with `{\"note\": \"why\"}`; who sent it is then not known.\n",
			a.ID, a.ID, SignalApprove, SignalReject)
	}
	workflow.SetCurrentDetails(ctx, text)
}
