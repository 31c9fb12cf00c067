package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// scenes are actions of users and incidents of nodes, each with its own NodePool and pods, all at the same time.
func scenes(t *testing.T, w *world.World) {
	t.Run("all", func(t *testing.T) {
		for name, play := range map[string]func(*testing.T, *world.World){
			"FamiliarManifests": familiarManifests, "BrokenManifests": brokenManifests,
			"Expiration": expiration, "GracePeriod": gracePeriod, "DeletedNode": deletedNode, "DeletedPool": deletedPool,
			"ClaimByHand": claimByHand, "LostWorkflow": lostWorkflow, "InstanceWithoutClaim": instanceWithoutClaim,
			"InstanceGone": instanceGone, "NoCapacityForAWhile": noCapacityForAWhile,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, w.For(t))
			})
		}
	})
	if !t.Failed() {
		w.AwaitNothing(3 * time.Minute)
	}
}

// small is what the pods of most scenes request; two of them fit on the types they may get.
const small = "cpu: 800m, memory: 1Gi"

// serve runs pods on their own NodePool and returns its first claim, initialized.
func serve(w *world.World, pool string, replicas int, further ...string) karpv1.NodeClaim {
	w.T.Helper()
	w.Apply(nodePool(pool, "5s", append(types("m5.large"), onDemand), further...))
	w.Apply(deployment(pool, "app", replicas, small, of(pool)))
	w.AwaitRunning(pool, replicas, 2*time.Minute)
	return ready(w, pool)
}

// ready waits until a NodePool has claims and all of them are Ready, and returns one.
func ready(w *world.World, pool string) karpv1.NodeClaim {
	w.T.Helper()
	var found karpv1.NodeClaim
	w.Await("claims of "+pool+" ready", 2*time.Minute, func() (bool, string) {
		claims := claimsOf(w, pool)
		for _, found = range claims {
			if !found.IsTrue("Ready") {
				return false, found.Name + " is not"
			}
		}
		return len(claims) > 0, "there is none"
	})
	return found
}

func claimsOf(w *world.World, pool string) []karpv1.NodeClaim {
	w.T.Helper()
	var list karpv1.NodeClaimList
	if err := w.List(w.Context(), &list, client.MatchingLabels{karpv1.NodePoolLabelKey: pool}); err != nil {
		w.T.Fatal(err)
	}
	return list.Items
}

// leave ends a scene: it removes the pods and then the NodePool.
func leave(w *world.World, pool string) {
	w.T.Helper()
	w.Apply(deployment(pool, "app", 0, small, of(pool)))
	w.Await("nodes of "+pool+" gone", 4*time.Minute, func() (bool, string) {
		claims := claimsOf(w, pool)
		return len(claims) == 0, fmt.Sprintf("%d claims", len(claims))
	})
	w.DeletePool(pool)
}

// ended waits for the workflow of a claim to end and checks its reason.
func ended(t *testing.T, w *world.World, claim, reason string) workflows.NodeClaimResult {
	t.Helper()
	ctx, stop := context.WithTimeout(w.Context(), world.Patience(5*time.Minute))
	defer stop()
	var result workflows.NodeClaimResult
	id := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim)
	if err := w.Temporal.GetWorkflow(ctx, id, "").Get(ctx, &result); err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	if result.Reason != reason {
		t.Errorf("%s ended for %q, want %q", id, result.Reason, reason)
	}
	w.RecordLatest(id, "scene-"+scene(t))
	return result
}

// scene returns the last part of a test's name, in lower case.
func scene(t *testing.T) string {
	return strings.ToLower(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:])
}

// gone checks that a claim, its Node and its instance are gone.
func gone(t *testing.T, w *world.World, claim karpv1.NodeClaim) {
	t.Helper()
	w.Await("NodeClaim "+claim.Name+", its Node and its instance gone", time.Minute, func() (bool, string) {
		claimErr := w.Get(w.Context(), client.ObjectKey{Name: claim.Name}, &karpv1.NodeClaim{})
		nodeErr := w.Get(w.Context(), client.ObjectKey{Name: claim.Status.NodeName}, &corev1.Node{})
		return claimErr != nil && nodeErr != nil && client.IgnoreNotFound(claimErr) == nil && client.IgnoreNotFound(nodeErr) == nil && !lives(w, claim),
			fmt.Sprintf("claim: %v; node: %v; instance lives: %t", claimErr, nodeErr, lives(w, claim))
	})
}

func lives(w *world.World, claim karpv1.NodeClaim) bool {
	w.T.Helper()
	for _, instance := range w.Living() {
		if strings.HasSuffix(claim.Status.ProviderID, "/"+instance.ID) {
			return true
		}
	}
	return false
}

func kubectl(t *testing.T, w *world.World, args ...string) string {
	t.Helper()
	out, err := w.Kubectl(args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// expiration: a claim lives for expireAfter, measured by a durable timer, and its pods get another node.
func expiration(t *testing.T, w *world.World) {
	const pool = "expiring"
	claim := serve(w, pool, 1, "expireAfter: 60s")
	ended(t, w, claim.Name, workflows.ReasonExpired)
	gone(t, w, claim)
	w.AwaitRunning(pool, 1, 2*time.Minute)
	leave(w, pool)
}

// gracePeriod: a deleted claim whose pods may not be evicted waits for them until its terminationGracePeriod is over.
func gracePeriod(t *testing.T, w *world.World) {
	const pool = "patient"
	claim := serve(w, pool, 1, "terminationGracePeriod: 12s")
	w.Apply(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: patient, name: all}
spec: {minAvailable: 1, selector: {matchLabels: {app: app}}}
`)
	w.Await("the budget blocks", time.Minute, func() (bool, string) {
		out := kubectl(t, w, "get", "pdb", "-n", pool, "all", "-o", "jsonpath={.status.currentHealthy}")
		return out == "1", "healthy: " + out
	})
	kubectl(t, w, "delete", "nodeclaim", claim.Name, "--wait=false")
	w.Await("the deadline noted", time.Minute, func() (bool, string) {
		var deleted karpv1.NodeClaim
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(&claim), &deleted); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, deleted.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
		return err == nil && at.Equal(deleted.DeletionTimestamp.Add(12*time.Second)), fmt.Sprint(deleted.Annotations)
	})
	if result := ended(t, w, claim.Name, workflows.ReasonClaimDeleted); result.Drain != workflows.DeadlineReached {
		t.Errorf("the drain ended as %q, want %q", result.Drain, workflows.DeadlineReached)
	}
	gone(t, w, claim)
	w.AwaitRunning(pool, 1, 2*time.Minute)
	kubectl(t, w, "delete", "pdb", "-n", pool, "all")
	leave(w, pool)
}

// deletedNode: kubectl delete node drains the node and removes its claim and instance too.
func deletedNode(t *testing.T, w *world.World) {
	const pool = "node-deleted"
	claim := serve(w, pool, 2)
	kubectl(t, w, "delete", "node", claim.Status.NodeName, "--wait=false")
	if result := ended(t, w, claim.Name, workflows.ReasonNodeDeleted); result.Drain != workflows.Drained {
		t.Errorf("the drain ended as %q, want %q", result.Drain, workflows.Drained)
	}
	gone(t, w, claim)
	w.AwaitRunning(pool, 2, 2*time.Minute)
	leave(w, pool)
}

// deletedPool: kubectl delete nodepool removes its claims too, and nothing is launched for their pods.
func deletedPool(t *testing.T, w *world.World) {
	const pool = "pool-deleted"
	claim := serve(w, pool, 2)
	kubectl(t, w, "delete", "nodepool", pool)
	ended(t, w, claim.Name, workflows.ReasonClaimDeleted)
	gone(t, w, claim)
	w.Await("the pods wait", time.Minute, func() (bool, string) {
		pods := w.Pods(pool)
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				return false, pod.Name + " is on " + pod.Spec.NodeName
			}
		}
		return len(pods) == 2, fmt.Sprintf("%d pods", len(pods))
	})
	if claims := claimsOf(w, pool); len(claims) > 0 {
		t.Errorf("%d claims of a deleted NodePool", len(claims))
	}
	w.Apply(deployment(pool, "app", 0, small, of(pool)))
}

// handMade is a NodeClaim as a person may write it.
func handMade(name, instanceType string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s, labels: {purpose: by-hand}}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  expireAfter: Never
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
  - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1b]}
`, name, instanceType)
}

// awaitReady waits until a claim is Ready.
func awaitReady(w *world.World, name string) karpv1.NodeClaim {
	w.T.Helper()
	var claim karpv1.NodeClaim
	w.Await("NodeClaim "+name+" ready", 2*time.Minute, func() (bool, string) {
		if err := w.Get(w.Context(), client.ObjectKey{Name: name}, &claim); err != nil {
			return false, err.Error()
		}
		return claim.IsTrue("Ready"), fmt.Sprintf("%+v", claim.Status.Conditions)
	})
	return claim
}

// claimByHand: a NodeClaim created by a person is launched as it says, and removed when it is deleted.
func claimByHand(t *testing.T, w *world.World) {
	w.Apply(handMade("by-hand", "c5.xlarge"))
	claim := awaitReady(w, "by-hand")
	var node corev1.Node
	if err := w.Get(w.Context(), client.ObjectKey{Name: claim.Status.NodeName}, &node); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{corev1.LabelInstanceTypeStable: "c5.xlarge", corev1.LabelTopologyZone: "us-east-1b", "purpose": "by-hand", karpv1.CapacityTypeLabelKey: "on-demand"} {
		if node.Labels[label] != want {
			t.Errorf("label %s of the node is %q, want %q", label, node.Labels[label], want)
		}
	}
	kubectl(t, w, "delete", "nodeclaim", claim.Name, "--wait=false")
	ended(t, w, claim.Name, workflows.ReasonClaimDeleted)
	gone(t, w, claim)
}

// lostWorkflow: a claim whose workflow was terminated gets another, which continues where the first one was.
func lostWorkflow(t *testing.T, w *world.World) {
	const pool = "lost-workflow"
	claim := serve(w, pool, 1)
	id := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim.Name)
	if err := w.Temporal.TerminateWorkflow(w.Context(), id, "", "the test wants to see it come back"); err != nil {
		t.Fatal(err)
	}
	w.Await("the claim is adopted", 2*time.Minute, func() (bool, string) {
		running := len(w.Executions(fmt.Sprintf("WorkflowId = %q AND ExecutionStatus = 'Running' AND Phase = %q", id, workflows.PhaseServing)))
		return running == 1, "no workflow serves it"
	})
	if claims := claimsOf(w, pool); len(claims) != 1 || claims[0].UID != claim.UID || !lives(w, claim) {
		t.Errorf("after the adoption there are %d claims, and the instance lives: %t", len(claims), lives(w, claim))
	}
	leave(w, pool)
	ended(t, w, claim.Name, workflows.ReasonEmpty)
}

// instanceWithoutClaim: somebody removed the finalizers and deleted the claim. The sweep removes what is left.
func instanceWithoutClaim(t *testing.T, w *world.World) {
	w.Apply(handMade("orphaned", "m5.large"))
	claim := awaitReady(w, "orphaned")
	id := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim.Name)
	if err := w.Temporal.TerminateWorkflow(w.Context(), id, "", "the test orphans its instance"); err != nil {
		t.Fatal(err)
	}
	kubectl(t, w, "patch", "nodeclaim", claim.Name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	kubectl(t, w, "delete", "nodeclaim", claim.Name)
	w.Await("the instance terminated", 3*time.Minute, func() (bool, string) { return !lives(w, claim), "it lives" })
	w.Await("the Node let go", 4*time.Minute, func() (bool, string) {
		err := w.Get(w.Context(), client.ObjectKey{Name: claim.Status.NodeName}, &corev1.Node{})
		return err != nil && client.IgnoreNotFound(err) == nil, "it is still there"
	})
}

// instanceGone: when an instance is terminated in the cloud, its claim is removed too, and its pods get another node.
func instanceGone(t *testing.T, w *world.World) {
	const pool = "instance-gone"
	claim := serve(w, pool, 1)
	id := claim.Status.ProviderID[strings.LastIndexByte(claim.Status.ProviderID, '/')+1:]
	w.Sim("POST", "/_sim/kill", map[string][]string{"instances": {id}}, nil)
	ended(t, w, claim.Name, workflows.ReasonInstanceGone)
	gone(t, w, claim)
	w.AwaitRunning(pool, 1, 4*time.Minute)
	leave(w, pool)
}

// noCapacityForAWhile: when there is no capacity, the claims are given back and the pods get Events; they get their nodes
// once there is capacity again.
func noCapacityForAWhile(t *testing.T, w *world.World) {
	const pool = "dry"
	w.Faults(ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: "c6a.*"}}}})
	w.Apply(nodePool(pool, "5s", []string{"{key: karpenter.k8s.aws/instance-family, operator: In, values: [c6a]}", onDemand}))
	w.Apply(deployment(pool, "app", 4, small, of(pool)))
	w.Await("the pods are told", 2*time.Minute, func() (bool, string) {
		events := kubectl(t, w, "get", "events", "-n", pool, "-o", "jsonpath={range .items[?(@.source.component==\"tenon\")]}{.reason}: {.message}{\"\\n\"}{end}")
		return strings.Contains(events, "FailedScheduling") && len(claimsOf(w, pool)) == 0, events
	})
	for _, run := range w.Runs(fmt.Sprintf("WorkflowType = %q AND NodePool = %q", workflows.LaunchType, pool)) {
		w.Record(run, "refused")
	}
	w.Heal()
	w.AwaitRunning(pool, 4, 6*time.Minute)
	leave(w, pool)
}

// familiarManifests: a NodePool and an EC2NodeClass as Karpenter's users write them, unchanged.
func familiarManifests(t *testing.T, w *world.World) {
	const pool = "familiar"
	w.Apply(strings.ReplaceAll(familiar, "CLUSTER", w.Lab.Cluster()))
	taken := []string{"nodeSelector: {team: blue, example.com/shard: s1}", "tolerations: [{key: dedicated, operator: Equal, value: blue, effect: NoSchedule}]"}
	w.Apply(deployment(pool, "app", 2, "cpu: 3, memory: 2Gi", taken...))
	var node corev1.Node
	w.Await("a registered node", 2*time.Minute, func() (bool, string) {
		var nodes corev1.NodeList
		if err := w.List(w.Context(), &nodes, client.MatchingLabels{karpv1.NodePoolLabelKey: pool, karpv1.NodeRegisteredLabelKey: "true"}); err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) == 1 {
			node = nodes.Items[0]
		}
		return len(nodes.Items) == 1, fmt.Sprintf("%d nodes", len(nodes.Items))
	})
	if node.Labels[karpv1.NodeInitializedLabelKey] == "true" {
		t.Error("the node counts as initialized although its startup taint is there")
	}
	w.Await("the startup taint removed", time.Minute, func() (bool, string) {
		out, err := w.Kubectl("taint", "node", node.Name, "example.com/agent:NoSchedule-")
		return err == nil, out
	})
	w.AwaitRunning(pool, 2, 2*time.Minute)
	claim := ready(w, pool)
	familiarNode(t, w, claim)
	familiarColumns(t, w, claim)

	w.Apply(deployment(pool, "beyond", 1, "cpu: 3, memory: 2Gi", taken...))
	w.Await("the pod beyond the limit is told", 2*time.Minute, func() (bool, string) {
		events := kubectl(t, w, "get", "events", "-n", pool, "-o", "jsonpath={range .items[?(@.source.component==\"tenon\")]}{.reason}: {.message}{\"\\n\"}{end}")
		return strings.Contains(events, "limit"), events
	})
	if claims := claimsOf(w, pool); len(claims) != 1 {
		t.Errorf("%d claims, which is beyond the NodePool's limit", len(claims))
	}
	w.Apply(deployment(pool, "beyond", 0, "cpu: 3, memory: 2Gi", taken...))
	w.Apply(deployment(pool, "app", 0, "cpu: 3, memory: 2Gi", taken...))
	ended(t, w, claim.Name, workflows.ReasonEmpty)
	gone(t, w, claim)
	kubectl(t, w, "delete", "nodepool", pool)
	kubectl(t, w, "delete", "ec2nodeclass", pool, "--timeout=60s")
}

const familiar = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: familiar}
spec:
  role: KarpenterNodeRole-CLUSTER
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]
  tags: {cost-center: "4711"}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: familiar}
spec:
  limits: {cpu: 8}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5s}
  template:
    metadata:
      labels: {team: blue}
      annotations: {example.com/owner: platform}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: familiar}
      expireAfter: 24h
      taints: [{key: dedicated, value: blue, effect: NoSchedule}]
      startupTaints: [{key: example.com/agent, effect: NoSchedule}]
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [arm64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["5"]}
      - {key: example.com/shard, operator: Exists}
`

// familiarNode checks that a node is what the manifests ask for.
func familiarNode(t *testing.T, w *world.World, claim karpv1.NodeClaim) {
	t.Helper()
	var node corev1.Node
	if err := w.Get(w.Context(), client.ObjectKey{Name: claim.Status.NodeName}, &node); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux", "karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "familiar",
		"karpenter.k8s.aws/ec2nodeclass": "familiar", "team": "blue", "example.com/shard": "s1", "karpenter.sh/registered": "true",
		"karpenter.sh/initialized": "true",
	} {
		if node.Labels[label] != want {
			t.Errorf("label %s of the node is %q, want %q", label, node.Labels[label], want)
		}
	}
	if generation := node.Labels["karpenter.k8s.aws/instance-generation"]; generation < "6" {
		t.Errorf("the node is of generation %q, want above 5", generation)
	}
	if category := node.Labels["karpenter.k8s.aws/instance-category"]; !slices.Contains([]string{"c", "m", "r"}, category) {
		t.Errorf("the node is of category %q, want c, m or r", category)
	}
	if node.Annotations["example.com/owner"] != "platform" {
		t.Errorf("annotations of the node: %v", node.Annotations)
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].ToString() != "dedicated=blue:NoSchedule" {
		t.Errorf("taints of the node: %v", node.Spec.Taints)
	}
	if claim.Spec.ExpireAfter.IsNever() || *claim.Spec.ExpireAfter.Duration != 24*time.Hour {
		t.Errorf("the claim expires after %v, want 24h", claim.Spec.ExpireAfter)
	}
	for _, instance := range w.Living() {
		if !strings.HasSuffix(claim.Status.ProviderID, "/"+instance.ID) {
			continue
		}
		for tag, want := range map[string]string{"cost-center": "4711", "karpenter.sh/nodepool": "familiar", "karpenter.k8s.aws/ec2nodeclass": "familiar",
			"kubernetes.io/cluster/" + w.Lab.Cluster(): "owned", "eks:eks-cluster-name": w.Lab.Cluster()} {
			if instance.Tags[tag] != want {
				t.Errorf("tag %s of the instance is %q, want %q", tag, instance.Tags[tag], want)
			}
		}
		if instance.CapacityType != "spot" {
			t.Errorf("the instance is %s, want spot", instance.CapacityType)
		}
	}
}

// familiarColumns checks that kubectl shows claims and pools in Karpenter's columns.
func familiarColumns(t *testing.T, w *world.World, claim karpv1.NodeClaim) {
	t.Helper()
	for _, row := range []struct {
		args []string
		want [][]string
	}{
		{[]string{"get", "nodeclaims", claim.Name}, [][]string{
			{"NAME", "TYPE", "CAPACITY", "ZONE", "NODE", "READY", "AGE"},
			{claim.Name, claim.Labels[corev1.LabelInstanceTypeStable], "spot", claim.Labels[corev1.LabelTopologyZone], claim.Status.NodeName, "True"},
		}},
		{[]string{"get", "nodeclaims", claim.Name, "-o", "wide"}, [][]string{
			{"NAME", "TYPE", "CAPACITY", "ZONE", "NODE", "READY", "AGE", "IMAGEID", "ID", "NODEPOOL", "NODECLASS", "DRIFTED"},
			{claim.Name},
		}},
		{[]string{"get", "nodepools", "familiar"}, [][]string{{"NAME", "NODECLASS", "NODES", "READY", "AGE"}, {"familiar", "familiar", "1", "True"}}},
		{[]string{"get", "ec2nodeclasses", "familiar"}, [][]string{{"NAME", "READY", "AGE"}, {"familiar", "True"}}},
	} {
		w.Await("columns of kubectl "+strings.Join(row.args, " "), time.Minute, func() (bool, string) {
			out := kubectl(t, w, row.args...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if len(lines) != len(row.want) {
				return false, out
			}
			for i, want := range row.want {
				if got := strings.Fields(lines[i]); len(got) < len(want) || strings.Join(got[:len(want)], " ") != strings.Join(want, " ") {
					return false, fmt.Sprintf("%s\nwant %v", out, want)
				}
			}
			return true, ""
		})
	}
	var types []string
	for _, condition := range claim.Status.Conditions {
		types = append(types, condition.Type)
		if condition.Status != metav1.ConditionTrue {
			t.Errorf("condition %s is %s: %s %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	for _, want := range []string{"Launched", "Registered", "Initialized", "Ready"} {
		if !strings.Contains(strings.Join(types, " "), want) {
			t.Errorf("condition %s is missing: there are %v", want, types)
		}
	}
}
