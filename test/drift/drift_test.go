// Package drift_test checks, on a laboratory, the conditions of serving nodes and the nodes that are removed without a
// decision of Disruption: those that will not recover, and those that should have been replaced first and were not.
package drift_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 20)) }

// TestNodesThatServe is the one test of this package that needs a laboratory: its scenes share it.
func TestNodesThatServe(t *testing.T) {
	w := world.Start(t, world.Options{Worker: []string{"--feature-gates=NodeRepair=true"}})
	w.DeletePool("default")
	for name, scene := range map[string]func(*testing.T, *world.World){
		"conditions": conditions, "repair": repair, "blocked": blocked, "gracefulexpiry": expiry, "gracefulexpiryforced": expiryByForce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t, w.For(t))
		})
	}
}

// setting is a NodePool whose budget forbids voluntary disruption, and a Deployment each of whose pods has its own node of
// the pool.
type setting struct {
	name, annotations, consolidateAfter, template string
	replicas                                      int
}

func (s setting) manifests() string {
	if s.consolidateAfter == "" {
		s.consolidateAfter = "Never"
	}
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s, annotations: {%[2]s}}
spec:
  disruption: {consolidateAfter: %[3]s, budgets: [{nodes: "0"}]}
  template:
    metadata: {labels: {scene: %[1]s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]
      %[4]s
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: default, name: %[1]s}
spec:
  replicas: %[5]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {scene: %[1]s}
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: nginx, resources: {requests: {cpu: "1500m"}}}]
`, s.name, s.annotations, s.consolidateAfter, s.template, s.replicas)
}

// play applies a setting and returns its claims once all of them serve.
func (s setting) play(w *world.World) []karpv1.NodeClaim {
	w.T.Helper()
	w.Apply(s.manifests())
	return s.serving(w)
}

func (s setting) serving(w *world.World) []karpv1.NodeClaim {
	w.T.Helper()
	var claims []karpv1.NodeClaim
	w.Await("nodes of "+s.name+" serve", 4*time.Minute, func() (bool, string) {
		claims = s.claims(w)
		ready := 0
		for i := range claims {
			if claims[i].IsTrue(karpv1.ConditionTypeInitialized) && claims[i].DeletionTimestamp.IsZero() {
				ready++
			}
		}
		return ready == s.replicas && len(claims) == s.replicas, fmt.Sprintf("%d of %d", ready, s.replicas)
	})
	return claims
}

func (s setting) claims(w *world.World) []karpv1.NodeClaim {
	w.T.Helper()
	var list karpv1.NodeClaimList
	if err := w.List(w.Context(), &list, client.MatchingLabels{karpv1.NodePoolLabelKey: s.name}); err != nil {
		w.T.Fatal(err)
	}
	return list.Items
}

// patch changes an object.
func patch(w *world.World, object client.Object, name, change string) {
	w.T.Helper()
	object.SetName(name)
	if err := w.Patch(w.Context(), object, client.RawPatch("application/merge-patch+json", []byte(change))); err != nil {
		w.T.Fatalf("patch %s: %v", name, err)
	}
}

// ended waits for the workflow of a claim to end and checks its reason.
func ended(w *world.World, claim, reason string, limit time.Duration) {
	w.T.Helper()
	ctx, stop := context.WithTimeout(w.Context(), world.Patience(limit))
	defer stop()
	var result workflows.NodeClaimResult
	id := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim)
	if err := w.Temporal.GetWorkflow(ctx, id, "").Get(ctx, &result); err != nil {
		w.T.Fatalf("%s: %v", id, err)
	}
	if result.Reason != reason {
		w.T.Errorf("%s ended for %q, want %q", id, result.Reason, reason)
	}
	w.RecordLatest(id, "scene-"+strings.ToLower(w.T.Name()[strings.LastIndexByte(w.T.Name(), '/')+1:]))
}

// awaitEvent waits for an Event about a Node and returns its message.
func awaitEvent(w *world.World, node, reason string) string {
	w.T.Helper()
	var message string
	w.Await("event "+reason+" on "+node, time.Minute, func() (bool, string) {
		var list corev1.EventList
		if err := w.List(w.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return false, err.Error()
		}
		for i := range list.Items {
			if event := &list.Items[i]; event.InvolvedObject.Name == node && event.Reason == reason {
				message = event.Message
				return true, ""
			}
		}
		return false, "there is none"
	})
	return message
}

// conditions leads one node through quiet and drift.
func conditions(t *testing.T, w *world.World) {
	s := setting{name: "conditions", consolidateAfter: "15s", replicas: 1}
	claim := s.play(w)[0]
	await := func(what, kind string, ok func(*metav1.Condition) bool) *karpv1.NodeClaim {
		t.Helper()
		var now karpv1.NodeClaim
		w.Await(what, time.Minute, func() (bool, string) {
			if err := w.Get(w.Context(), client.ObjectKey{Name: claim.Name}, &now); err != nil {
				return false, err.Error()
			}
			condition := now.Condition(kind)
			return ok(condition), fmt.Sprintf("%+v", condition)
		})
		return &now
	}
	gone := func(c *metav1.Condition) bool { return c == nil }
	is := func(reason, says string) func(*metav1.Condition) bool {
		return func(c *metav1.Condition) bool {
			return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && strings.Contains(c.Message, says)
		}
	}
	quiet := await("the node has been quiet", karpv1.ConditionTypeConsolidatable, is("Consolidatable", ""))
	initialized, consolidatable := quiet.Condition(karpv1.ConditionTypeInitialized), quiet.Condition(karpv1.ConditionTypeConsolidatable)
	if after := consolidatable.LastTransitionTime.Sub(initialized.LastTransitionTime.Time); after < 14*time.Second {
		t.Errorf("Consolidatable came %s after the node was initialized, want 15s at least", after)
	}
	if quiet.Status.LastPodEventTime.IsZero() {
		t.Error("lastPodEventTime is not there, although a pod has come")
	}
	patch(w, &karpv1.NodePool{}, s.name, `{"spec":{"template":{"metadata":{"labels":{"version":"two"}}}}}`)
	await("the node has drifted, and the message names the field", karpv1.ConditionTypeDrifted, is("NodePoolDrifted", `spec.template.metadata.labels[version] is "two"`))
	patch(w, &karpv1.NodePool{}, s.name, `{"spec":{"template":{"metadata":{"labels":{"version":null}}}}}`)
	await("the node is what it was", karpv1.ConditionTypeDrifted, gone)
	patch(w, &karpv1.NodePool{}, s.name, `{"spec":{"template":{"spec":{"requirements":[{"key":"node.kubernetes.io/instance-type","operator":"In","values":["c5.large"]}]}}}}`)
	await("the node is not what is asked for", karpv1.ConditionTypeDrifted, is("RequirementsDrifted", `the node has "m5.large"`))
	patch(w, &karpv1.NodePool{}, s.name, `{"spec":{"disruption":{"consolidateAfter":"Never"},"template":{"spec":{"requirements":[{"key":"node.kubernetes.io/instance-type","operator":"In","values":["m5.large"]}]}}}}`)
	await("the node is what is asked for", karpv1.ConditionTypeDrifted, gone)
	await("nodes are never consolidated", karpv1.ConditionTypeConsolidatable, gone)
	if left := s.claims(w); len(left) != 1 || left[0].UID != claim.UID {
		t.Errorf("the node was disrupted although the budget forbids it: %d claims", len(left))
	}
}

// fall patches a Node's status so that its kernel has been broken for longer than is tolerated.
func fall(w *world.World, name string) {
	w.T.Helper()
	since := time.Now().Add(-31 * time.Minute).UTC().Format(time.RFC3339)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change := fmt.Sprintf(`{"status":{"conditions":[{"type":"KernelReady","status":"False","reason":"ForkFailedOutOfPIDs","message":"","lastHeartbeatTime":%q,"lastTransitionTime":%[1]q}]}}`, since)
	if err := w.Status().Patch(w.Context(), node, client.RawPatch("application/strategic-merge-patch+json", []byte(change))); err != nil {
		w.T.Fatalf("condition of Node %s: %v", name, err)
	}
}

// repair checks that a node which will not recover is removed, whatever its pods and budgets say, and that its pod runs
// elsewhere.
func repair(t *testing.T, w *world.World) {
	s := setting{name: "repair", replicas: 1}
	ill := s.play(w)[0]
	w.Apply(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: default, name: repair}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: repair}}}
`)
	fall(w, ill.Status.NodeName)
	if message := awaitEvent(w, ill.Status.NodeName, workflows.ReasonUnhealthy); !strings.Contains(message, "KernelReady has been False since") {
		t.Errorf("the event says %q", message)
	}
	ended(w, ill.Name, workflows.ReasonUnhealthy, 2*time.Minute)
	if next := s.serving(w)[0]; next.UID == ill.UID {
		t.Error("the node that was repaired serves on")
	}
}

// blocked checks that nothing is repaired in a pool with too many unhealthy nodes.
func blocked(t *testing.T, w *world.World) {
	s := setting{name: "blocked", replicas: 2}
	claims := s.play(w)
	for i := range claims {
		fall(w, claims[i].Status.NodeName)
	}
	// The first node may have been removed before the second became unhealthy.
	w.Await("a node is not repaired", time.Minute, func() (bool, string) {
		var list corev1.EventList
		if err := w.List(w.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return false, err.Error()
		}
		for i := range list.Items {
			if event := &list.Items[i]; event.Reason == "NodeRepairBlocked" && (event.InvolvedObject.Name == claims[0].Status.NodeName || event.InvolvedObject.Name == claims[1].Status.NodeName) {
				return strings.Contains(event.Message, "2 of 2 nodes of its NodePool are unhealthy"), event.Message
			}
		}
		return false, "no event"
	})
}

// expiry lets a node wait for a replacement that its budget forbids, kills the worker, and checks that the node goes once
// the NodePool no longer asks to wait.
func expiry(t *testing.T, w *world.World) {
	s := setting{name: "expiry", annotations: "tenon.sh/expiration: graceful", template: "expireAfter: 30s", replicas: 1}
	old := s.play(w)[0]
	// The successor lives longer.
	patch(w, &karpv1.NodePool{}, s.name, `{"spec":{"template":{"spec":{"expireAfter":"720h"}}}}`)
	w.Await("the workflow waits for a replacement", 2*time.Minute, func() (bool, string) {
		for _, event := range w.History(workflows.Cluster(w.Lab.Cluster()).NodeClaimID(old.Name), "") {
			if asked := event.GetActivityTaskScheduledEventAttributes(); asked.GetActivityType().GetName() == workflows.DeleteClaimActivity.Name {
				return true, ""
			}
		}
		return false, "it has not asked whether the claim may be deleted"
	})
	if err := w.Lab.Kill(lab.Worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.Await("the worker is back, and the node serves on", 2*time.Minute, func() (bool, string) {
		var now karpv1.NodeClaim
		err := w.Get(w.Context(), client.ObjectKey{Name: old.Name}, &now)
		if err != nil || !now.DeletionTimestamp.IsZero() {
			t.Fatalf("the node went although nothing replaces it: %v", err)
		}
		return time.Since(old.CreationTimestamp.Time) > 60*time.Second, ""
	})
	patch(w, &karpv1.NodePool{}, s.name, `{"metadata":{"annotations":{"tenon.sh/expiration":null}}}`)
	ended(w, old.Name, workflows.ReasonExpired, 4*time.Minute)
	if next := s.serving(w)[0]; next.UID == old.UID {
		t.Error("the node that expired serves on")
	}
}

// expiryByForce lets a node wait for a replacement until its grace period is over, although its pod may not be evicted.
func expiryByForce(t *testing.T, w *world.World) {
	s := setting{name: "by-force", annotations: "tenon.sh/expiration: graceful", template: "expireAfter: 90s\n      terminationGracePeriod: 60s", replicas: 1}
	old := s.play(w)[0]
	patch(w, &karpv1.NodePool{}, s.name, `{"spec":{"template":{"spec":{"expireAfter":"720h"}}}}`)
	w.Apply(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: default, name: by-force}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: by-force}}}
`)
	ended(w, old.Name, workflows.ReasonExpired, 4*time.Minute)
	if lived := time.Since(old.CreationTimestamp.Time); lived < 150*time.Second {
		t.Errorf("the node went after %s, want after expireAfter and terminationGracePeriod together", lived)
	}
}
