package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/activities"
	"github.com/tenon-sh/tenon/workflows"
)

// answerTimeout limits how long a command waits for a worker to answer a query or an order.
const answerTimeout = 15 * time.Second

// status queries the latest drain of a node, which may have ended.
func (d *drains) status(ctx context.Context, node string) (workflows.DrainStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var status workflows.DrainStatus
	value, err := d.temporal.QueryWorkflow(ctx, d.cluster.DrainID(node), "", workflows.QueryStatus)
	if err != nil {
		return status, d.unanswered(ctx, node, err)
	}
	if err := value.Get(&status); err != nil {
		return status, fmt.Errorf("read the status of the drain of %s: %w", node, err)
	}
	return status, nil
}

// ended returns how the latest drain of a node has ended. Temporal itself knows, so no worker has to answer.
func (d *drains) ended(ctx context.Context, node string) (workflows.DrainStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var result workflows.DrainResult
	err := d.temporal.GetWorkflow(ctx, d.cluster.DrainID(node), "").Get(ctx, &result)
	var failed *sdk.WorkflowExecutionError
	switch {
	case errors.As(err, &failed): // as when a person has terminated it
		return workflows.DrainStatus{Node: node, Outcome: workflows.DrainOutcome(failed.Unwrap().Error())}, nil
	case err != nil:
		return workflows.DrainStatus{}, err
	}
	return workflows.DrainStatus{Node: node, Outcome: result.Outcome, Evicted: result.Evicted, Blockers: result.Blockers}, nil
}

// unanswered returns an error that says why a drain did not answer.
func (d *drains) unanswered(ctx context.Context, node string, err error) error {
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("no drain of node %s is known in cluster %s", node, d.cluster)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no worker of cluster %s answered within %s; is one running?", d.cluster, answerTimeout)
	}
	return fmt.Errorf("ask the drain of %s: %w", node, err)
}

// order sends an order to a running drain and prints the resulting status. Cancelling a drain that has already ended
// makes the node schedulable again.
func (d *drains) order(ctx context.Context, node, update string, order workflows.DrainOrder) error {
	order.By = d.by(ctx)
	status, err := d.ordered(ctx, node, update, order)
	var ended *endedError
	switch {
	case errors.As(err, &ended) && update == workflows.UpdateCancel:
		return d.giveBack(ctx, node, ended.status)
	case err != nil:
		return err
	}
	return d.print(status)
}

// endedError means that a drain had already ended when it got an order.
type endedError struct {
	update string
	status workflows.DrainStatus
}

// Error names the order and how the drain ended.
func (e *endedError) Error() string {
	return fmt.Sprintf("%s: the drain of %s has ended: %s", e.update, e.status.Node, e.status.Outcome)
}

// ordered sends an order to a running drain and returns the resulting status. It returns an *endedError if the drain
// has ended.
func (d *drains) ordered(ctx context.Context, node, update string, order workflows.DrainOrder) (workflows.DrainStatus, error) {
	within, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	handle, err := d.temporal.UpdateWorkflow(within, client.UpdateWorkflowOptions{WorkflowID: d.cluster.DrainID(node), UpdateName: update,
		Args: []any{order}, WaitForStage: client.WorkflowUpdateStageCompleted})
	var status workflows.DrainStatus
	if err == nil {
		err = handle.Get(within, &status)
	}
	var refused *sdk.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &refused):
		return status, fmt.Errorf("%s: %s", update, refused.Message())
	case errors.As(err, &missing):
		ended, err := d.ended(ctx, node)
		if err != nil {
			return status, fmt.Errorf("%s: %w", update, d.unanswered(ctx, node, err))
		}
		return status, &endedError{update, ended}
	case err != nil:
		return status, fmt.Errorf("%s: %w", update, d.unanswered(within, node, err))
	}
	return status, nil
}

// giveBack makes a node schedulable again whose drain has ended and left the node in place, as a drain with --keep
// does.
func (d *drains) giveBack(ctx context.Context, node string, ended workflows.DrainStatus) error {
	in, err := d.describe(ctx, node, drainFlags{})
	if err != nil {
		return fmt.Errorf("%s: the drain of %s has ended: %s; %w", workflows.UpdateCancel, node, ended.Outcome, err)
	}
	undo := activities.Drains{Client: d.kube, Log: zap.NewNop()}
	if _, err := undo.Uncordon(ctx, workflows.UncordonInput{Node: in.Node, NodeUID: in.NodeUID}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(d.progress, "the drain of %s had ended; the node is schedulable again\n", node)
	return d.print(ended)
}

// list prints the drains that are under way.
func (d *drains) list(ctx context.Context) error {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND %s = '%s'", workflows.DrainType, workflows.AttrCluster.GetName(), d.cluster)
	all := []workflows.DrainStatus{}
	for token := []byte(nil); ; {
		page, err := d.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: token})
		if err != nil {
			return fmt.Errorf("list drains: %w", err)
		}
		for _, execution := range page.GetExecutions() {
			node := strings.TrimPrefix(execution.GetExecution().GetWorkflowId(), d.cluster.DrainID(""))
			status, err := d.status(ctx, node)
			if err != nil {
				return err
			}
			all = append(all, status)
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	if d.json {
		return writeJSON(d.out, all)
	}
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	if len(all) == 0 {
		_, err := fmt.Fprintf(d.out, "no node of cluster %s is being drained\n", d.cluster)
		return err
	}
	_, _ = fmt.Fprintln(table, "NODE\tPHASE\tREASON\tEVICTED\tLEFT\tDEADLINE\tBLOCKED BY")
	for _, status := range all {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", status.Node, status.Phase, status.Reason, status.Evicted, status.Left, inWords(status.Deadline), firstBlocker(status.Blockers))
	}
	return table.Flush()
}

func firstBlocker(blockers []workflows.Blocker) string {
	if len(blockers) == 0 {
		return ""
	}
	first := strings.TrimSpace(blockers[0].Cause + " " + blockers[0].By)
	if more := len(blockers) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first, more)
	}
	return first
}

func inWords(deadline time.Time) string {
	if deadline.IsZero() {
		return "none"
	}
	return deadline.Local().Format(time.RFC3339)
}

// print shows one drain.
func (d *drains) print(status workflows.DrainStatus) error {
	if d.json {
		return writeJSON(d.out, status)
	}
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(table, "%s:\t%s\n", name, value)
		}
	}
	phase := status.Phase
	if status.Outcome != "" {
		phase = string(status.Outcome)
	}
	row("Node", status.Node)
	row("NodeClaim", status.Claim)
	row("Phase", phase)
	row("Reason", status.Reason)
	row("Ordered by", status.By)
	row("Note", status.Note)
	row("Deadline", inWords(status.Deadline))
	row("Evicted", fmt.Sprint(status.Evicted))
	if status.Outcome != workflows.Drained {
		row("Left", fmt.Sprint(status.Left))
		for _, blocker := range status.Blockers {
			row("Blocked", blockerInWords(blocker))
		}
	}
	return table.Flush()
}

func blockerInWords(blocker workflows.Blocker) string {
	return strings.TrimSpace(blocker.Pod + " " + blocker.Message)
}
