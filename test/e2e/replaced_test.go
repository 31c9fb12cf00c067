package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// patience is how long a replacement's node may take to serve in this laboratory, where machines boot in two seconds and are
// ready five seconds later, and other processes may keep the processors busy.
const patience = 2 * time.Minute

// replacements checks a replacement that is carried out and one that is undone.
func replacements(t *testing.T, w *world.World) {
	t.Run("all", func(t *testing.T) {
		for name, play := range map[string]func(*testing.T, *world.World){"Replaced": replaced, "TakenBack": takenBack} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, w.For(t))
			})
		}
	})
	w.Heal()
	if !t.Failed() {
		w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).DisruptionID(), "that-replaces")
		w.AwaitNothing(3 * time.Minute)
	}
}

// replaced: a NodePool's requirements change, so its node has drifted. Another node serves before it is removed, and its
// pods are Ready there before the replacement ends.
func replaced(t *testing.T, w *world.World) {
	const pool = "replaced"
	old := serve(w, pool, 2)
	w.Apply(nodePool(pool, "5s", append(types("c5.large"), onDemand)))
	kubectl(t, w, "annotate", "nodepool", pool, karpv1.WaitForReadyAnnotationKey+"=true")
	if result := ended(t, w, old.Name, "Drifted"); result.Drain != workflows.Drained {
		t.Errorf("the node was let go %q", result.Drain)
	}
	w.AwaitRunning(pool, 2, time.Minute)
	now := ready(w, pool)
	id := now.Annotations[karpv1.ReplacementAnnotationKey]
	result := replacementEnded(t, w, id)
	if result.Undone != "" || !slices.Equal(result.Retired, []string{old.Name}) || !slices.Equal(result.Launched, []string{now.Name}) {
		t.Errorf("replacement %s: %+v", id, result)
	}
	unmarked(t, w, now.Status.NodeName)
	if n := len(claimsOf(w, pool)); n != 1 {
		t.Errorf("%d claims instead of 1", n)
	}
	cost := world.CostOf(w.History(workflows.Cluster(w.Lab.Cluster()).ReplacementID(id), ""))
	t.Logf("a replacement costs %d actions and %d events, the launch and the lives of the nodes apart", cost.Actions, cost.Events)
	if cost.Actions > 12 || cost.Events > 60 {
		t.Errorf("a replacement costs %d actions and %d events", cost.Actions, cost.Events)
	}
	w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).ReplacementID(id), "uneventful")
	leave(w, pool)
}

// takenBack: what replaces a node never becomes ready, so the node keeps serving, unmarked, and what was launched is
// removed.
func takenBack(t *testing.T, w *world.World) {
	const pool = "takenback"
	old := serve(w, pool, 2)
	w.Faults(ec2sim.Faults{NeverReady: []ec2sim.BootFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: "m5.xlarge"}}}})
	w.Apply(nodePool(pool, "5s", append(types("m5.xlarge"), onDemand)))
	id := ""
	w.Await("node of "+old.Name+" marked", time.Minute, func() (bool, string) {
		node := nodeOf(w, old)
		id = node.Annotations[karpv1.ReplacementAnnotationKey]
		return id != "", fmt.Sprint(node.Spec.Taints)
	})
	w.Await("the claim says why", time.Minute, func() (bool, string) {
		found := claim(w, old.Name)
		return found.IsTrue(karpv1.ConditionTypeDisruptionReason), fmt.Sprint(found.Status.Conditions)
	})
	result := replacementEnded(t, w, id)
	if !strings.Contains(result.Undone, "did not serve in time") || len(result.TakenBack.Claims) != 1 || !slices.Equal(result.TakenBack.Nodes, []string{old.Status.NodeName}) {
		t.Errorf("replacement %s: %+v", id, result)
	}
	// A drifted node is replaced again after a while, but not before something has changed for the better.
	w.Apply(nodePool(pool, "5s", append(types("m5.large"), onDemand)))
	unmarked(t, w, old.Status.NodeName)
	if found := claim(w, old.Name); found.Condition(karpv1.ConditionTypeDisruptionReason) != nil {
		t.Errorf("the claim still says that it is disrupted: %v", found.Status.Conditions)
	}
	w.Await("what was launched gone", 2*time.Minute, func() (bool, string) {
		claims := claimsOf(w, pool)
		return len(claims) == 1 && claims[0].Name == old.Name, fmt.Sprintf("%d claims", len(claims))
	})
	if events := kubectl(t, w, "get", "events", "-A", "--field-selector=reason=DisruptionAborted"); !strings.Contains(events, old.Name) {
		t.Errorf("nobody can see why %s was not replaced: %s", old.Name, events)
	}
	w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).ReplacementID(id), "taken-back")
	leave(w, pool)
}

func claim(w *world.World, name string) *karpv1.NodeClaim {
	w.T.Helper()
	claim := &karpv1.NodeClaim{}
	if err := w.Get(w.Context(), client.ObjectKey{Name: name}, claim); err != nil {
		w.T.Fatal(err)
	}
	return claim
}

func nodeOf(w *world.World, claim karpv1.NodeClaim) *corev1.Node {
	w.T.Helper()
	node := &corev1.Node{}
	if err := w.Get(w.Context(), client.ObjectKey{Name: claim.Status.NodeName}, node); err != nil {
		w.T.Fatal(err)
	}
	return node
}

// unmarked checks that a node exists and carries no taint of a node that is being removed.
func unmarked(t *testing.T, w *world.World, name string) {
	t.Helper()
	var node corev1.Node
	if err := w.Get(w.Context(), client.ObjectKey{Name: name}, &node); err != nil {
		t.Error(err)
		return
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == karpv1.DisruptedTaintKey {
			t.Errorf("node %s is tainted %v", name, taint)
		}
	}
}

// replacementEnded waits for a replacement to end and returns its result.
func replacementEnded(t *testing.T, w *world.World, id string) workflows.ReplacementResult {
	t.Helper()
	ctx, stop := context.WithTimeout(w.Context(), world.Patience(3*time.Minute))
	defer stop()
	var result workflows.ReplacementResult
	if err := w.Temporal.GetWorkflow(ctx, workflows.Cluster(w.Lab.Cluster()).ReplacementID(id), "").Get(ctx, &result); err != nil {
		t.Fatalf("replacement %s: %v", id, err)
	}
	return result
}
