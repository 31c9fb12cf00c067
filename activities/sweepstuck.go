package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reportedProblems is the search attribute in which Temporal reports why a workflow makes no progress: its workflow task
// has failed several times in a row, for example because the worker's code does not fit the workflow's history.
const reportedProblems = "TemporalReportedProblems"

// maxStuck limits how many stuck workflows one sweep names.
const maxStuck = 20

// stuck names the workflows that are stuck although workers run, and emits an Event about each now and then. Temporal
// servers before 1.30 do not report them.
func (s *sweep) stuck(ctx context.Context) {
	page, err := s.executions.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: maxStuck,
		Query: fmt.Sprintf("TenonCluster = '%s' AND ExecutionStatus = 'Running' AND %s IS NOT NULL", s.cluster, reportedProblems)})
	var unknown *serviceerror.InvalidArgument
	if errors.As(err, &unknown) {
		return
	}
	if err != nil {
		s.fail("workflows that are stuck", fmt.Errorf("list workflows: %w", err))
		return
	}
	for _, running := range page.GetExecutions() {
		id, why := running.GetExecution().GetWorkflowId(), problems(running)
		s.result.Stuck = append(s.result.Stuck, strings.TrimSpace(id+" "+why))
		if s.swept.news("stuck "+id+running.GetExecution().GetRunId(), s.now) {
			s.events.tell(s.subject(id), corev1.EventTypeWarning, eventWorkflowStuck, fmt.Sprintf("Workflow %s is stuck: %s. Its history may need the previous workers; see Temporal's UI", id, why))
		}
	}
}

// problems returns what Temporal reports about a workflow that makes no progress.
func problems(running *workflowpb.WorkflowExecutionInfo) string {
	var said []string
	if payload := running.GetSearchAttributes().GetIndexedFields()[reportedProblems]; payload != nil {
		// A value that cannot be read counts as missing.
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &said)
	}
	return strings.Join(said, " ")
}

// subject returns the object where people look for news of a workflow: its NodeClaim or Node, and otherwise the namespace
// kube-system.
func (s *sweep) subject(id string) runtime.Object {
	if name, life := strings.CutPrefix(id, s.cluster.NodeClaimID("")); life && s.named[name] != nil {
		return s.named[name]
	}
	if name, drain := strings.CutPrefix(id, s.cluster.DrainID("")); drain {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
}
