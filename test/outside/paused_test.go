package outside_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// pausedOverRestarts pauses everything, and kills the worker and Temporal. What was paused before is paused after, until
// somebody resumes.
func pausedOverRestarts(w *world.World) {
	if out, err := w.Tenon("pause", "all", "--reason", "a test of restarts"); err != nil || !strings.Contains(out, "a test of restarts") {
		w.T.Fatalf("tenon pause: %v\n%s", err, out)
	}
	nothing := func(when string) {
		w.Await("the pod to be told that nothing is launched "+when, time.Minute, func() (bool, string) {
			out, err := w.Tenon("why", "pod", "paused/"+w.Pods("paused")[0].Name)
			return err == nil && strings.Contains(out, "provisioning is paused in the whole cluster by"), out
		})
		if claims := w.Claims(); len(claims) > 0 {
			w.T.Errorf("%s %d claims were made during the pause", when, len(claims))
		}
	}
	w.Apply(pods("paused", 1))
	w.Await("the pod", time.Minute, func() (bool, string) { return len(w.Pods("paused")) == 1, "" })
	nothing("before the crash")
	for _, component := range []lab.Component{lab.Worker, lab.Temporal} {
		if err := w.Lab.Kill(component, syscall.SIGKILL); err != nil {
			w.T.Fatal(err)
		}
	}
	nothing("after the crash")
	out, err := w.Tenon("pause", "list", "-o", "json")
	var listed []struct{ What, By, Reason string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &listed)
	}
	if err != nil || len(listed) != 3 || listed[0].By == "" || listed[0].Reason != "a test of restarts" {
		w.T.Errorf("tenon pause list: %v\n%s", err, out)
	}
	if out, err := w.Tenon("resume", "all"); err != nil || !strings.Contains(out, "nothing is paused") {
		w.T.Fatalf("tenon resume: %v\n%s", err, out)
	}
	w.AwaitRunning("paused", 1, 2*time.Minute)
	pausedAfterwards(w)
	empty(w, "paused")
}

// pausedAfterwards tells a life to end, as an interruption did before a pause began that the life has yet to notice: the node
// serves until the pause is over, and then goes.
func pausedAfterwards(w *world.World) {
	const lasts = 15 * time.Second
	claim := w.Claims()[0]
	paused := time.Now()
	if out, err := w.Tenon("pause", "interruption", "--reason", "a test", "--for", lasts.String()); err != nil {
		w.T.Fatalf("tenon pause: %v\n%s", err, out)
	}
	life := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim.Name)
	if err := w.Temporal.SignalWorkflow(w.Context(), life, "", workflows.SignalEnding, workflows.Ending{Reason: workflows.ReasonSpotInterrupted}); err != nil {
		w.T.Fatal(err)
	}
	w.Await("the claim to be deleted", time.Minute, func() (bool, string) {
		for _, now := range w.Claims() {
			if now.Name == claim.Name {
				return !now.DeletionTimestamp.IsZero(), "it serves"
			}
		}
		return true, ""
	})
	if after := time.Since(paused); after < lasts-2*time.Second { // the pause begins at a full second, and clocks differ
		w.T.Errorf("the claim was deleted %s after a pause of %s began", after, lasts)
	}
	w.Await("the life to end", 2*time.Minute, func() (bool, string) {
		description, err := w.Temporal.DescribeWorkflowExecution(w.Context(), life, "")
		return err == nil && description.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, fmt.Sprint(err)
	})
	w.RecordLatest(life, "interrupted-while-paused")
	w.AwaitRunning("paused", 1, 2*time.Minute)
}

// observedFromOutside runs the worker with --observe while a pod waits: it says what it would launch, and writes nothing, not
// even the Lease.
func observedFromOutside(w *world.World) {
	w.RestartWorker(append(fromOutsideFlags(), "--observe")...)
	before := len(w.Writes())
	w.Apply(pods("observed", 1))
	w.Await("the worker to say what it would launch", 2*time.Minute, func() (bool, string) {
		log, err := os.ReadFile(filepath.Join(w.Lab.Dir(), "logs", "worker.log"))
		return err == nil && strings.Contains(string(log), "would launch 1: "), ""
	})
	if writes := w.Writes()[before:]; len(writes) > 0 {
		w.T.Errorf("a worker that only observes has written: %+v", writes)
	}
	w.RestartWorker(fromOutsideFlags()...)
	w.AwaitRunning("observed", 1, 2*time.Minute)
	empty(w, "observed")
}
