package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

// AwaitAdopted waits until there are this many claims, every one of them has one running workflow, and no other one runs. Then
// exactly their instances may live.
func AwaitAdopted(w *World, claims int) {
	w.T.Helper()
	// The connection may still wait after the failures of the server's absence, and the database for what it reads first.
	w.Await("Temporal to list workflows", time.Minute, func() (bool, string) {
		_, err := w.Temporal.ListWorkflow(w.Context(), &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1})
		return err == nil, fmt.Sprint(err)
	})
	began := time.Now()
	w.Await("every claim to be adopted", 2*time.Minute, func() (bool, string) {
		if len(w.Claims()) != claims {
			return false, fmt.Sprintf("%d claims", len(w.Claims()))
		}
		var lives []string
		for _, execution := range w.Executions("WorkflowType = 'NodeClaim' AND ExecutionStatus = 'Running'") {
			lives = append(lives, execution.GetExecution().GetWorkflowId())
		}
		for _, claim := range w.Claims() {
			if !slices.ContainsFunc(lives, func(id string) bool { return strings.HasSuffix(id, "/"+claim.Name) }) {
				return false, claim.Name + " has no workflow"
			}
		}
		return len(lives) == claims, fmt.Sprintf("%d workflows for %d claims", len(lives), claims)
	})
	w.T.Logf("every claim was adopted after %s", time.Since(began).Round(time.Second))
	if living := len(w.Living()); living != claims {
		w.T.Errorf("%d instances live, want %d", living, claims)
	}
}
