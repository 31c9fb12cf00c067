package outside_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// approvedOverRestarts has an empty node wait for approval, and kills the worker and Temporal. What waited before waits after,
// until a signal sent by hand approves it.
func approvedOverRestarts(w *world.World) {
	wants := func(what string) {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		if err := w.Patch(w.Context(), pool, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {"tenon.sh/approval": %s}}}`, what))); err != nil {
			w.T.Fatal(err)
		}
	}
	wants(`"empty"`)
	w.Apply(pods("approved", 1))
	w.AwaitRunning("approved", 1, 2*time.Minute)
	w.Apply(pods("approved", 0))
	var waiting []struct{ ID, State string }
	list := func(when string) {
		w.Await("the node to wait for approval "+when, 2*time.Minute, func() (bool, string) {
			out, err := w.Tenon("approvals", "-o", "json")
			if err == nil {
				err = json.Unmarshal([]byte(out), &waiting)
			}
			return err == nil && len(waiting) == 1 && waiting[0].State == "Waiting", fmt.Sprint(err, out)
		})
	}
	list("before the crash")
	before := waiting[0].ID
	for _, component := range []lab.Component{lab.Worker, lab.Temporal} {
		if err := w.Lab.Kill(component, syscall.SIGKILL); err != nil {
			w.T.Fatal(err)
		}
	}
	list("after the crash")
	claims := w.Claims()
	if waiting[0].ID != before || len(claims) != 1 || !claims[0].DeletionTimestamp.IsZero() {
		w.T.Errorf("after the crash %+v waits, and the claims are %v", waiting, claims)
	}
	id := workflows.Cluster(w.Lab.Cluster()).ApprovalID(before)
	w.Await("the signal", time.Minute, func() (bool, string) {
		err := w.Temporal.SignalWorkflow(w.Context(), id, "", workflows.SignalApprove, map[string]string{"note": "by hand"})
		return err == nil, fmt.Sprint(err)
	})
	empty(w, "approved")
	var result workflows.ApprovalResult
	if err := w.Temporal.GetWorkflow(w.Context(), id, "").Get(w.Context(), &result); err != nil || result.Outcome != workflows.ApprovalApproved || !strings.HasPrefix(result.By, "unknown") {
		w.T.Errorf("the approval ended with %+v, %v", result, err)
	}
	w.RecordLatest(id, "approved-by-signal")
	wants("null")
}
