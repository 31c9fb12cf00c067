package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"
)

// show publishes the state of the drain. It always updates the workflow's details in the Temporal UI, since they cost
// nothing. It writes the search attribute Phase only when a person has to act or no longer has to, since each write is an
// action and an event.
func (d *drain) show(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, d.details())
	phase := d.phase()
	worthIt := phase == PhaseBlocked || phase == PhasePaused || d.Progress.Phase != ""
	if !worthIt || phase == d.Progress.Phase || phase == PhaseFinished || phase == PhaseCanceling {
		return nil
	}
	d.Progress.Phase = phase
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPhase.ValueSet(phase)); err != nil {
		return fmt.Errorf("show phase: %w", err)
	}
	return nil
}

// details renders the drain as markdown.
func (d *drain) details() string {
	b := fmt.Appendf(nil, "**%s** %s\n\n| | |\n|---|---|\n", d.phase(), d.sentence())
	row := func(name, value string) {
		if value != "" {
			b = fmt.Appendf(b, "| %s | %s |\n", name, cell(value))
		}
	}
	row("Node", d.Node)
	row("NodeClaim", d.Claim)
	row("Reason", d.Reason)
	row("Ordered by", d.By)
	row("Note", d.Note)
	row("Last order", d.Progress.Said)
	row("Afterwards", d.afterwards())
	if d.Deadline.IsZero() {
		row("Deadline", "none")
	} else {
		row("Deadline", d.Deadline.UTC().Format(time.RFC3339))
	}
	row("Evicted", fmt.Sprint(d.Progress.Evicted))
	if len(d.Progress.Blockers) == 0 || d.ended == Drained {
		return string(b)
	}
	b = append(b, "\n| Pod | Blocked by | |\n|---|---|---|\n"...)
	for _, blocker := range d.Progress.Blockers {
		b = fmt.Appendf(b, "| %s | %s | %s |\n", cell(blocker.Pod), cell(strings.TrimSpace(blocker.Cause+" "+blocker.By)), cell(blocker.Message))
	}
	return string(b)
}

func (d *drain) sentence() string {
	switch d.phase() {
	case PhaseFinished:
		switch d.ended {
		case Drained:
			return "The node is drained."
		case DeadlineReached:
			return fmt.Sprintf("The deadline has come; %d pods were left.", d.Progress.Left)
		case NodeGone:
			return "The node no longer exists."
		}
		return "The drain was taken back."
	case PhaseCanceling:
		return "The drain is being taken back."
	case PhasePaused:
		return "No pod is evicted until the drain is resumed. The deadline keeps running."
	case PhaseBlocked:
		if d.Progress.Hooks.Due && !d.Progress.Hooks.Over {
			return "No pod is evicted until the hooks have run that are listed below."
		}
		return fmt.Sprintf("%d pods are left. What cannot go now is listed below.", d.Progress.Left)
	}
	if d.Progress.Forced {
		return "Pods are deleted without regard to budgets."
	}
	if d.Progress.Hooks.Due && !d.Progress.Hooks.Over {
		return "The hooks of the NodePool run before the first pod is evicted."
	}
	return "Pods are being evicted."
}

func (d *drain) afterwards() string {
	switch {
	case d.Delete, d.Claim != "" && d.Reason != ReasonManualDrain, len(d.Progress.Waiters) > 0:
		return "the node is terminated"
	}
	return "the node stays, cordoned"
}

// cell keeps text from breaking out of its cell in a markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
}
