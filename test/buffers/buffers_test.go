// Package buffers_test tests CapacityBuffers and static NodePools against a real control plane: the kube-scheduler finds the
// room, kubectl changes the numbers, and nodes are lost.
package buffers_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 8)) }

const patience = 4 * time.Minute

// TestSpareNodes is the one test of this package: its scenes share a laboratory.
func TestSpareNodes(t *testing.T) {
	// The sweep runs often, so that the lost node is noticed soon.
	w := world.Start(t, world.Options{Worker: []string{"--sweep-interval=10s"}})
	t.Run("all", func(t *testing.T) {
		for name, play := range map[string]func(*world.World){
			"Headroom": headroom, "PartOfADeployment": partOfADeployment, "Static": static, "NotResolved": notResolved,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(w.For(t))
			})
		}
	})
	if t.Failed() {
		return
	}
	w.AwaitNothing(patience)
	t.Run("NotServed", func(t *testing.T) { notServed(w.For(t)) })
}

// headroom: a buffer has its room before any pod asks for it; new pods take it without waiting for a node, and the room is
// made again. Nodes that run nothing stay for as long as the room is wanted.
func headroom(w *world.World) {
	const pool = "headroom"
	w.Apply(nodePool(pool))
	w.Apply(deployment(pool, 0))
	w.Apply(buffer(pool, "{podTemplateRef: {name: app}, replicas: 3}"))
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 3)
	first := nodesOf(w, pool)
	if len(first) != 1 {
		w.T.Fatalf("%d nodes hold room for three pods, want one", len(first))
	}

	w.Apply(deployment(pool, 3))
	w.AwaitRunning(pool, 3, patience)
	for _, pod := range w.Pods(pool) {
		if pod.Spec.NodeName != first[0].Name {
			w.T.Errorf("pod %s runs on %s, want it on %s, which was there for it", pod.Name, pod.Spec.NodeName, first[0].Name)
		}
	}
	w.Await("the room made again", patience, func() (bool, string) {
		return len(nodesOf(w, pool)) == 2, fmt.Sprintf("%d nodes", len(nodesOf(w, pool)))
	})
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 3)
	if launched := launchedFor(w, pool); launched != 2 {
		w.T.Errorf("%d instances were launched, want one for each three pods", launched)
	}

	w.Apply(deployment(pool, 0))
	w.Await("one of two empty nodes gone", patience, func() (bool, string) {
		return len(nodesOf(w, pool)) == 1, fmt.Sprintf("%d nodes", len(nodesOf(w, pool)))
	})
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 3)
	kubectl(w, "delete", "capacitybuffer", "-n", pool, "spare")
	awaitNodes(w, pool, 0)
	w.DeletePool(pool)
}

// partOfADeployment: the room follows the scale of the Deployment, up and down, within its limits.
func partOfADeployment(w *world.World) {
	const pool = "part"
	w.Apply(nodePool(pool))
	w.Apply(deployment(pool, 2))
	w.Apply(buffer(pool, `{scalableRef: {apiGroup: apps, kind: Deployment, name: app}, percentage: 50, limits: {cpu: "4"}}`))
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 1)
	w.AwaitRunning(pool, 2, patience)
	kubectl(w, "scale", "deployment", "-n", pool, "app", "--replicas=5")
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 3)
	w.AwaitRunning(pool, 5, patience)
	kubectl(w, "scale", "deployment", "-n", pool, "app", "--replicas=20")
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 4)
	w.AwaitRunning(pool, 20, patience)
	kubectl(w, "scale", "deployment", "-n", pool, "app", "--replicas=0")
	awaitBuffer(w, pool, bufferv1.ReasonBufferEmpty, 0)
	awaitNodes(w, pool, 0)
	w.DeletePool(pool)
}

// static: a pool has the number of nodes that it asks for, without any pods; a lost node is replaced; kubectl scale changes
// the number, and limits.nodes bounds it.
func static(w *world.World) {
	const pool = "static"
	w.Apply(nodePool(pool, "replicas: 2", "limits: {nodes: 3}"))
	awaitNodes(w, pool, 2)
	lost := nodesOf(w, pool)[0]
	w.Sim("POST", "/_sim/kill", map[string][]string{"instances": {lost.Spec.ProviderID[strings.LastIndexByte(lost.Spec.ProviderID, '/')+1:]}}, nil)
	w.Await("a lost node replaced", patience, func() (bool, string) {
		nodes := nodesOf(w, pool)
		lives := slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == lost.Name })
		return len(nodes) == 2 && !lives, fmt.Sprintf("%d nodes, the lost one among them: %t", len(nodes), lives)
	})
	awaitNodes(w, pool, 2)

	w.Apply(deployment(pool, 1))
	w.AwaitRunning(pool, 1, patience)
	used := w.Pods(pool)[0].Spec.NodeName
	kubectl(w, "scale", "nodepool", pool, "--replicas=4")
	awaitNodes(w, pool, 3)
	kubectl(w, "scale", "nodepool", pool, "--replicas=1")
	awaitNodes(w, pool, 1)
	if left := nodesOf(w, pool)[0].Name; left != used {
		w.T.Errorf("node %s is left, want %s, on which a pod runs", left, used)
	}
	if launched := launchedFor(w, pool); launched != 4 {
		w.T.Errorf("%d instances were launched, want 4: two, one for the lost one, and one up to the limit", launched)
	}
	kubectl(w, "scale", "nodepool", pool, "--replicas=0")
	awaitNodes(w, pool, 0)
	kubectl(w, "scale", "deployment", "-n", pool, "app", "--replicas=0")
	w.AwaitRunning(pool, 0, patience)
	w.DeletePool(pool)
}

// notResolved: a buffer whose template is missing reports that, and has its room once the template exists.
func notResolved(w *world.World) {
	const pool = "later"
	w.Apply(nodePool(pool))
	w.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + pool + "}")
	w.Apply(buffer(pool, `{podTemplateRef: {name: app}, limits: {cpu: "2"}}`))
	awaitReason(w, pool, bufferv1.ConditionReadyForProvisioning, bufferv1.ReasonPodTemplateNotFound)
	awaitReason(w, pool, bufferv1.ConditionProvisioning, bufferv1.ReasonNotReadyForProvisioning)
	w.Apply(deployment(pool, 0))
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 2)
	kubectl(w, "delete", "namespace", pool)
	awaitNodes(w, pool, 0)
	w.DeletePool(pool)
}

// notServed: a cluster without the definition of CapacityBuffers is served like any other, and its buffers once it has the
// definition.
func notServed(w *world.World) {
	const pool = "unserved"
	definition := "capacitybuffers." + bufferv1.Group
	kubectl(w, "delete", "customresourcedefinition", definition)
	w.Apply(nodePool(pool))
	w.Apply(deployment(pool, 2))
	w.AwaitRunning(pool, 2, patience)
	definitions, err := deploy.CRDs()
	if err != nil {
		w.T.Fatal(err)
	}
	w.Apply(string(definitions["autoscaling.x-k8s.io_capacitybuffers.yaml"]))
	w.Await("the definition", patience, func() (bool, string) {
		err := w.TryApply(buffer(pool, "{podTemplateRef: {name: app}, replicas: 4}"))
		return err == nil, fmt.Sprint(err)
	})
	awaitBuffer(w, pool, bufferv1.ReasonFitsExistingCapacity, 4)
	idle(w)
	kubectl(w, "delete", "capacitybuffer", "-n", pool, "spare")
	w.Apply(deployment(pool, 0))
	awaitNodes(w, pool, 0)
	w.DeletePool(pool)
}

// idle checks that a buffer which has its room causes no action at all.
func idle(w *world.World) {
	w.T.Helper()
	events := func() string {
		c := workflows.Cluster(w.Lab.Cluster())
		return fmt.Sprintf("%d events of Provisioning, %d of Disruption", len(w.History(c.ProvisioningID(), "")), len(w.History(c.DisruptionID(), "")))
	}
	before, since := events(), time.Now()
	// A busy machine takes seconds to finish reacting to what happened before.
	w.Await("quiet", patience, func() (bool, string) {
		if now := events(); now != before {
			before, since = now, time.Now()
		}
		return time.Since(since) > 12*time.Second, before
	})
	w.Await("twenty seconds to pass", patience, func() (bool, string) {
		if now := events(); now != before {
			w.T.Errorf("the cluster is idle, and %s became %s", before, now)
			return true, now
		}
		return time.Since(since) > 32*time.Second, before
	})
}

// nodePool returns the manifest of a NodePool of machines with four cores, for pods that select it. further are additional
// lines of its spec.
func nodePool(name string, further ...string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 2s, budgets: [{nodes: "100%%"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  `, name) + strings.Join(further, "\n  ") + "\n"
}

// deployment returns the manifests of a Deployment in a namespace named after its pool, and of a PodTemplate of the same
// pods, three of which fit on a node.
func deployment(pool string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: app}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: app}}
  template: %[3]s
---
apiVersion: v1
kind: PodTemplate
metadata: {namespace: %[1]s, name: app}
template: %[3]s
`, pool, replicas, `{metadata: {labels: {app: app}}, spec: {terminationGracePeriodSeconds: 1, nodeSelector: {karpenter.sh/nodepool: `+pool+
		`}, containers: [{name: app, image: app, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}`)
}

// buffer returns the manifest of a CapacityBuffer.
func buffer(namespace, spec string) string {
	return fmt.Sprintf(`
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {namespace: %s, name: spare}
spec: %s
`, namespace, spec)
}

// awaitBuffer waits until a buffer is resolved to this many pods, and its Provisioning condition has the reason.
func awaitBuffer(w *world.World, namespace, reason string, replicas int32) {
	w.T.Helper()
	w.Await(fmt.Sprintf("%s of %d pods", reason, replicas), patience, func() (bool, string) {
		found := getBuffer(w, namespace)
		c := found.Condition(bufferv1.ConditionProvisioning)
		return c != nil && c.Reason == reason && found.Status.Replicas != nil && *found.Status.Replicas == replicas, fmt.Sprintf("%+v, %d nodes", found.Status, len(nodesOf(w, namespace)))
	})
}

func awaitReason(w *world.World, namespace, condition, reason string) {
	w.T.Helper()
	w.Await(condition+" "+reason, patience, func() (bool, string) {
		found := getBuffer(w, namespace)
		c := found.Condition(condition)
		return c != nil && c.Reason == reason, fmt.Sprintf("%+v", found.Status)
	})
}

func getBuffer(w *world.World, namespace string) *bufferv1.CapacityBuffer {
	w.T.Helper()
	found := &bufferv1.CapacityBuffer{}
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "spare"}, found); err != nil {
		w.T.Fatal(err)
	}
	return found
}

// awaitNodes waits until a pool has this many nodes, all of them initialized, and reports that number in its status.
func awaitNodes(w *world.World, pool string, want int) {
	w.T.Helper()
	w.Await(fmt.Sprintf("%d nodes of %s", want, pool), patience, func() (bool, string) {
		nodes := nodesOf(w, pool)
		initialized := 0
		for i := range nodes {
			if nodes[i].Labels[karpv1.NodeInitializedLabelKey] == "true" && nodes[i].DeletionTimestamp.IsZero() {
				initialized++
			}
		}
		var object karpv1.NodePool
		if err := w.Get(w.Context(), client.ObjectKey{Name: pool}, &object); err != nil {
			w.T.Fatal(err)
		}
		said := int64(-1)
		if object.Status.Nodes != nil {
			said = *object.Status.Nodes
		}
		return len(nodes) == want && initialized == want && said == int64(want), fmt.Sprintf("%d nodes, %d of them ready; the pool says %d", len(nodes), initialized, said)
	})
}

func nodesOf(w *world.World, pool string) []corev1.Node {
	w.T.Helper()
	var list corev1.NodeList
	if err := w.List(w.Context(), &list, client.MatchingLabels{karpv1.NodePoolLabelKey: pool}); err != nil {
		w.T.Fatal(err)
	}
	return list.Items
}

// launchedFor counts the instances that were ever launched for a pool.
func launchedFor(w *world.World, pool string) int {
	w.T.Helper()
	count := 0
	for _, instance := range w.Instances() {
		if instance.Tags["karpenter.sh/nodepool"] == pool {
			count++
		}
	}
	return count
}

func kubectl(w *world.World, args ...string) {
	w.T.Helper()
	if out, err := w.Kubectl(args...); err != nil {
		w.T.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
