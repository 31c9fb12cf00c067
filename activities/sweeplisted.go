package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/workflows"
)

// Temporal's list is in another database than its workflows. When a backup is restored in which the two are not of the same
// moment, the list shows workflows as running, for as long as it is kept, that Temporal no longer has. A claim of such a
// workflow would never be adopted, and an instance without a claim would count as held. So each sweep also asks by id for some
// of the workflows that the list shows.
const (
	// checkShare is which part of the listed workflows one sweep checks, and checkLeast how many it checks at least.
	checkShare = 10
	checkLeast = 50
)

// list lists the running NodeClaim workflows and Drains, so that a large cluster does not cost a request for each.
func (s *sweep) list(ctx context.Context) error {
	s.listed = map[string]listedWorkflow{}
	shown := map[string]bool{}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("TenonCluster = '%s' AND WorkflowType IN ('%s', '%s') AND ExecutionStatus = 'Running'",
		s.cluster, workflows.NodeClaimType, workflows.DrainType)}
	for {
		page, err := s.executions.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		for _, running := range page.GetExecutions() {
			run := running.GetExecution().GetRunId()
			shown[run] = true
			if !s.checked.isOver(run) {
				s.listed[running.GetExecution().GetWorkflowId()] = listed(running)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			s.checked.keep(shown)
			s.check(ctx)
			return nil
		}
	}
}

func listed(running *workflowpb.WorkflowExecutionInfo) listedWorkflow {
	read := func(fields map[string]*commonpb.Payload, key string) (value string) {
		if payload := fields[key]; payload != nil {
			// A value that cannot be read counts as missing.
			_ = converter.GetDefaultDataConverter().FromPayload(payload, &value)
		}
		return value
	}
	memo := running.GetMemo().GetFields()
	return listedWorkflow{run: running.GetExecution().GetRunId(), started: running.GetStartTime().AsTime(), uid: read(memo, workflows.MemoUID),
		clusterUID: read(memo, workflows.MemoClusterUID), instance: read(running.GetSearchAttributes().GetIndexedFields(), workflows.AttrInstance.GetName())}
}

// check asks by id for the listed workflows that were checked longest ago, and forgets those that do not run. One that Temporal
// does not answer for counts as running.
func (s *sweep) check(ctx context.Context) {
	due := s.checked.longestAgo(s.listed)
	due = due[:min(len(due), max(checkLeast, len(due)/checkShare))]
	over := make([]bool, len(due))
	var group errgroup.Group
	group.SetLimit(adoptAtOnce)
	for i, id := range due {
		group.Go(func() error {
			described, err := s.executions.DescribeWorkflowExecution(ctx, id, s.listed[id].run)
			var missing *serviceerror.NotFound
			over[i] = errors.As(err, &missing) || err == nil && described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING
			return nil
		})
	}
	_ = group.Wait()
	for i, id := range due {
		s.checked.note(s.listed[id].run, over[i], s.now)
		if over[i] {
			delete(s.listed, id)
		}
	}
}

// checked remembers the runs that sweeps have asked for by id. It is this process's memory only.
type checked struct {
	mu sync.Mutex
	at map[string]time.Time
	// over has the runs that do not run, whatever the list says.
	over map[string]bool
}

func (c *checked) isOver(run string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over[run]
}

func (c *checked) note(run string, over bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at, c.over = map[string]time.Time{}, map[string]bool{}
	}
	if c.at[run] = now; over {
		c.over[run] = true
	}
}

// keep forgets the runs that the list no longer shows.
func (c *checked) keep(shown map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.at, func(run string, _ time.Time) bool { return !shown[run] })
	maps.DeleteFunc(c.over, func(run string, _ bool) bool { return !shown[run] })
}

// longestAgo returns the ids of workflows, those first whose runs were checked longest ago or never.
func (c *checked) longestAgo(listed map[string]listedWorkflow) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(listed), func(a, b string) int {
		return cmp.Or(c.at[listed[a].run].Compare(c.at[listed[b].run]), cmp.Compare(a, b))
	})
}
