package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

// SignalEvaluate tells Disruption that something has changed which may make a node unneeded.
const SignalEvaluate = "evaluate"

// DisruptionInput is the durable state of Disruption, carried from run to run.
type DisruptionInput struct {
	Cluster Cluster `json:"cluster"`
	// Pending says that a change has been announced which no evaluation has looked at yet.
	Pending bool `json:"pending,omitempty"`
	// NextLook is when a node that must stay for now may be looked at again; zero means only after a change.
	NextLook time.Time `json:"nextLook,omitzero"`
	// Last is the note of the last evaluation, for people.
	Last string `json:"last,omitempty"`
}

// EvaluateInput asks for one evaluation; the mirror knows the rest.
type EvaluateInput struct{}

// Evaluation is what EvaluateActivity returns.
type Evaluation struct {
	// Commands are the removals that are due and within budget.
	Commands []Removal `json:"commands,omitempty"`
	NextLook time.Time `json:"nextLook,omitzero"`
	// Again says that there was more to remove than one evaluation returns.
	Again bool `json:"again,omitempty"`
	// Note says in a few lines which nodes go, and why others stay.
	Note string `json:"note,omitempty"`
}

// Removal is a set of nodes that go for one reason.
type Removal struct {
	Reason string        `json:"reason"`
	Nodes  []RemovedNode `json:"nodes"`
}

// RemovedNode is one node of a Removal.
type RemovedNode struct {
	Node    string   `json:"node"`
	NodeUID string   `json:"nodeUID"`
	Claim   ClaimRef `json:"claim"`
}

// RemovalResult is what became of a Removal.
type RemovalResult struct {
	Removed int `json:"removed"`
	// Kept are the nodes that turned out to be needed, and why.
	Kept []string `json:"kept,omitempty"`
}

// Disruption takes away nodes that are no longer needed, for ever. It is woken by change and by the moment at which a
// node that had to stay may go, never by a fixed clock; with nothing to do it costs nothing.
func Disruption(ctx workflow.Context, state DisruptionInput) error {
	d := disruption{DisruptionInput: state}
	changes := workflow.GetSignalChannel(ctx, SignalEvaluate)
	woken := func() bool {
		for changes.ReceiveAsync(nil) {
			d.Pending = true
		}
		return d.Pending || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
	}
	for {
		d.describe(ctx)
		if err := d.wait(ctx, woken); err != nil {
			return err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, Disruption, d.DisruptionInput)
		}
		if err := d.evaluate(ctx); err != nil {
			return err
		}
	}
}

type disruption struct {
	DisruptionInput
}

// wait returns when something has changed or the next look is due.
func (d *disruption) wait(ctx workflow.Context, woken func() bool) error {
	if d.NextLook.IsZero() {
		return workflow.Await(ctx, woken)
	}
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: max(d.NextLook.Sub(workflow.Now(ctx)), 0),
		TimerOptions: workflow.TimerOptions{Summary: "next look"}}, woken)
	return err
}

// evaluate decides once and carries the decision out.
func (d *disruption) evaluate(ctx workflow.Context) error {
	d.Pending = false
	found, err := EvaluateActivity.Run(ctx, EvaluateInput{}, "which nodes are not needed")
	if err != nil {
		return err
	}
	d.Pending, d.NextLook, d.Last = found.Again, found.NextLook, found.Note
	removals := make([]workflow.Future, 0, len(found.Commands))
	for _, command := range found.Commands {
		removals = append(removals, RemoveActivity.Start(ctx, command, fmt.Sprintf("remove %d nodes: %s", len(command.Nodes), command.Reason)))
	}
	for _, removal := range removals {
		var result RemovalResult
		if err := removal.Get(ctx, &result); err != nil {
			return err
		}
		for _, kept := range result.Kept {
			d.Last += "\n- kept: " + kept
		}
	}
	return nil
}

func (d *disruption) describe(ctx workflow.Context) {
	details := "Waiting for a change.\n"
	if !d.NextLook.IsZero() {
		details = "Next look at " + d.NextLook.UTC().Format(time.RFC3339) + ", or after a change.\n"
	}
	if d.Last != "" {
		details += "\n**Last evaluation**\n\n" + d.Last + "\n"
	}
	workflow.SetCurrentDetails(ctx, details)
}
