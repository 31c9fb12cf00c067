package recorded

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// mostUnderWay and mostDecided bound the lists of Lately, and mostNodes the nodes that a decision lists.
	mostUnderWay, mostDecided, mostNodes = 200, 50, 10
)

// Lately reads which workflows are under way and what was decided lately. It remembers what cannot change, so that reading
// again costs two lists and one look at the history of each workflow that is new. It is not safe for concurrent use.
type Lately struct {
	reader Reader
	// begun is what the first events of runs say, by run; shown is what was last returned.
	begun    map[string]beginning
	underWay []*view.Workflow
	decided  []*view.Decision
}

// beginning is what the first event of a run says.
type beginning struct {
	summary, why string
	saves        float64
	nodes        []string
}

// NewLately returns a Lately that has read nothing.
func NewLately(reader Reader) *Lately { return &Lately{reader: reader} }

// Read returns the workflows under way, without the lives of nodes that serve, and the last decisions: launches, replacements
// and drains. Both begin with the newest. What has not changed since the last Read is the same pointer.
func (l *Lately) Read(ctx context.Context) ([]*view.Workflow, []*view.Decision, error) {
	running, err := l.reader.list(ctx, fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType != '%s'", workflows.NodeClaimType), mostUnderWay)
	if err != nil {
		return nil, nil, err
	}
	lately, err := l.reader.list(ctx, fmt.Sprintf("WorkflowType IN ('%s', '%s', '%s') AND ExecutionStatus != 'ContinuedAsNew'", workflows.LaunchType, workflows.ReplacementType, workflows.DrainType), mostDecided)
	if err != nil {
		return nil, nil, err
	}
	begun := map[string]beginning{}
	for _, execution := range append(append([]*workflowpb.WorkflowExecutionInfo{}, running...), lately...) {
		run := execution.GetExecution().GetRunId()
		known, ok := l.begun[run]
		if !ok {
			if known, err = l.reader.beginning(ctx, execution); err != nil {
				return nil, nil, err
			}
		}
		begun[run] = known
	}
	l.begun = begun
	l.underWay = kept(l.underWay, running, func(e *workflowpb.WorkflowExecutionInfo) view.Workflow { return underWay(e, begun) })
	l.decided = keptDecisions(l.decided, lately, begun)
	return l.underWay, l.decided, nil
}

// beginning reads the first event of a run.
func (r Reader) beginning(ctx context.Context, execution *workflowpb.WorkflowExecutionInfo) (b beginning, err error) {
	event, err := r.first(ctx, execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId())
	if err != nil || event == nil {
		return b, err
	}
	b.summary = summary(event)
	input := event.GetWorkflowExecutionStartedEventAttributes().GetInput()
	read := func(into any) bool { return converter.GetDefaultDataConverter().FromPayloads(input, into) == nil }
	switch execution.GetType().GetName() {
	case workflows.ReplacementType:
		var in workflows.ReplacementInput
		if read(&in) {
			b.why, b.saves = in.Why, in.SavesPerHour
			for _, node := range in.Nodes {
				b.nodes = append(b.nodes, node.Node)
			}
		}
	case workflows.DrainType:
		var in workflows.DrainInput
		if read(&in) {
			b.nodes, b.why = []string{in.Node}, in.Note
			if in.By != "" {
				b.why = fmt.Sprintf("ordered by %s: %s", in.By, in.Note)
			}
		}
	case workflows.LaunchType:
		var in workflows.LaunchInput
		if read(&in) {
			for _, claim := range in.Claims {
				b.nodes = append(b.nodes, claim.Name)
			}
		}
	}
	b.nodes = b.nodes[:min(mostNodes, len(b.nodes))]
	return b, nil
}

func underWay(e *workflowpb.WorkflowExecutionInfo, begun map[string]beginning) view.Workflow {
	return view.Workflow{ID: e.GetExecution().GetWorkflowId(), Run: e.GetExecution().GetRunId(), Type: e.GetType().GetName(),
		Summary: begun[e.GetExecution().GetRunId()].summary, Phase: attribute(e, workflows.AttrPhase.GetName()), NodePool: attribute(e, workflows.AttrNodePool.GetName()),
		Node: attribute(e, workflows.AttrNode.GetName()), NodeClaim: attribute(e, workflows.AttrNodeClaim.GetName()),
		Reason: attribute(e, workflows.AttrReason.GetName()), Started: e.GetStartTime().AsTime()}
}

func decision(e *workflowpb.WorkflowExecutionInfo, begun map[string]beginning) view.Decision {
	b := begun[e.GetExecution().GetRunId()]
	d := view.Decision{ID: e.GetExecution().GetWorkflowId(), Run: e.GetExecution().GetRunId(), At: e.GetStartTime().AsTime(), Type: e.GetType().GetName(),
		What: b.summary, Why: b.why, SavesPerHour: b.saves, Nodes: b.nodes}
	if e.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		d.Outcome, d.Ended = e.GetStatus().String(), e.GetCloseTime().AsTime()
	}
	if phase := attribute(e, workflows.AttrPhase.GetName()); d.Outcome == view.OutcomeCompleted && phase == workflows.PhaseUndone {
		d.Outcome = phase
	}
	return d
}

// kept returns the pointers to earlier values where they are equal.
func kept[T comparable](before []*T, executions []*workflowpb.WorkflowExecutionInfo, value func(*workflowpb.WorkflowExecutionInfo) T) []*T {
	known := make(map[T]*T, len(before))
	for _, old := range before {
		known[*old] = old
	}
	now := make([]*T, 0, len(executions))
	for _, e := range executions {
		fresh := value(e)
		if old := known[fresh]; old != nil {
			now = append(now, old)
		} else {
			now = append(now, &fresh)
		}
	}
	return now
}

// keptDecisions does what kept does. Of one run, only the outcome changes.
func keptDecisions(before []*view.Decision, executions []*workflowpb.WorkflowExecutionInfo, begun map[string]beginning) []*view.Decision {
	known := make(map[string]*view.Decision, len(before))
	for _, old := range before {
		known[old.Run] = old
	}
	now := make([]*view.Decision, 0, len(executions))
	for _, e := range executions {
		fresh := decision(e, begun)
		if old := known[fresh.Run]; old != nil && old.Outcome == fresh.Outcome {
			now = append(now, old)
		} else {
			now = append(now, &fresh)
		}
	}
	return now
}
