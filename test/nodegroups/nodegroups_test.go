// Package nodegroups_test moves a cluster from the Cluster Autoscaler to Tenon, with the commands of
// docs/from-cluster-autoscaler.md: managed node groups, as EKS plays them on the simulated account, run the cluster's pods. Tenon gets
// the manifests that tenon convert --from-asg proposes, the groups' nodes are drained, and the groups are scaled to zero.
package nodegroups_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

const (
	// awsCLI is the AWS CLI as Debian packages it, which people would use too.
	awsCLI = "/usr/bin/aws"
	// groupLabel names the managed node group of a Node.
	groupLabel = "eks.amazonaws.com/nodegroup"
	patience   = 2 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 1)) }

// shop is what runs in the cluster: one pod per node of the groups, and a budget that lets one of them be unavailable.
const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {team: shop}
      tolerations: [{key: team, value: shop, effect: NoSchedule}]
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}
      containers: [{name: web, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: shop, name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
`

// TestMoveIn follows docs/from-cluster-autoscaler.md.
func TestMoveIn(t *testing.T) {
	w := world.Start(t, world.Options{})
	w.DeletePool("default")
	cluster := w.Lab.Cluster()
	groups := map[string]string{"web-a": "subnet-0a5e7e0000000001", "web-b": "subnet-0a5e7e0000000002"} // one in each of two zones
	for name, subnet := range groups {
		aws(w, "eks", "create-nodegroup", "--cluster-name", cluster, "--nodegroup-name", name, "--subnets", subnet,
			"--node-role", "arn:aws:iam::123456789012:role/KarpenterNodeRole-"+cluster, "--instance-types", "m5.large", "--ami-type", "AL2023_x86_64_STANDARD",
			"--scaling-config", "minSize=0,maxSize=3,desiredSize=2", "--labels", "team=shop", "--taints", "key=team,value=shop,effect=NO_SCHEDULE")
	}
	w.Apply(shop)
	w.AwaitRunning("shop", 4, patience)
	old := nodes(w, func(n *corev1.Node) bool { return groups[n.Labels[groupLabel]] != "" })
	if on := nodesOfPods(w); !cmp.Equal(old, on) || len(old) != 4 {
		t.Fatalf("the pods run on %v and the groups have %v", on, old)
	}

	// 1. Propose, read the notes, and let the API server judge.
	command := w.Command("convert", "--from-asg", "--cluster-name", cluster)
	var manifests, notes bytes.Buffer
	command.Stdout, command.Stderr = &manifests, &notes
	if err := command.Run(); err != nil {
		t.Fatalf("tenon convert --from-asg: %v\n%s", err, &notes)
	}
	for _, want := range []string{"differs from web-b only in place and size", "labels[eks.amazonaws.com/nodegroup]: not carried over"} {
		if !strings.Contains(notes.String(), want) || !strings.Contains(manifests.String(), want) {
			t.Errorf("the notes and the comments lack %q:\n%s", want, &notes)
		}
	}
	file := filepath.Join(t.TempDir(), "pools.yaml")
	if err := os.WriteFile(file, manifests.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(w, "apply", "--dry-run=server", "-f", file)
	kubectl(w, "apply", "-f", file)
	w.Await("the NodePool to be ready", patience, func() (bool, string) {
		out, err := w.Kubectl("get", "nodepool", "web", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		return err == nil && strings.Contains(out, `"status":"True"`), out
	})

	// 2. No group grows any more, and its nodes are drained: Tenon launches nodes for what is evicted, as budgets allow.
	kubectl(w, "cordon", "-l", groupLabel)
	kubectl(w, "drain", "-l", groupLabel, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m")
	w.AwaitRunning("shop", 4, patience)
	moved := nodesOfPods(w)
	for _, node := range w.Nodes() {
		if !slices.Contains(moved, node.Name) {
			continue
		}
		if node.Labels[karpv1.NodePoolLabelKey] != "web" || node.Labels["team"] != "shop" || node.Labels[corev1.LabelInstanceTypeStable] != "m5.large" {
			t.Errorf("node %s, to which pods have moved, has the labels %v", node.Name, node.Labels)
		}
		if !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == "team" && taint.Effect == corev1.TaintEffectNoSchedule
		}) {
			t.Errorf("node %s has the taints %v", node.Name, node.Spec.Taints)
		}
	}

	// 3. The groups are scaled to zero: only Tenon's instances are left, and the pods stay.
	for name := range groups {
		aws(w, "eks", "update-nodegroup-config", "--cluster-name", cluster, "--nodegroup-name", name, "--scaling-config", "minSize=0,maxSize=3,desiredSize=0")
	}
	var ofGroups, ofTenon int
	for _, instance := range w.Living() {
		if groups[instance.Tags["eks:nodegroup-name"]] != "" {
			ofGroups++
		} else if instance.Tags[karpv1.NodePoolLabelKey] == "web" {
			ofTenon++
		}
	}
	if claims := len(w.Claims()); ofGroups != 0 || ofTenon != 4 || claims != 4 {
		t.Errorf("%d instances of the groups, %d of Tenon and %d claims are left, want 0, 4 and 4", ofGroups, ofTenon, claims)
	}
	w.AwaitRunning("shop", 4, patience)
	if now := nodesOfPods(w); !cmp.Equal(moved, now) {
		t.Errorf("the pods ran on %v and now run on %v", moved, now)
	}
	for _, instance := range w.Living() {
		checkLike(t, instance)
	}
}

// checkLike compares an instance of Tenon's with those that the groups had.
func checkLike(t *testing.T, instance ec2sim.Instance) {
	t.Helper()
	if instance.Type != "m5.large" || instance.CapacityType != karpv1.CapacityTypeOnDemand || !slices.Contains([]string{"us-east-1a", "us-east-1b"}, instance.Zone) {
		t.Errorf("instance %s is %s, %s in %s, and the groups have m5.large, on-demand in us-east-1a and us-east-1b", instance.ID, instance.Type, instance.CapacityType, instance.Zone)
	}
}

// nodes returns the sorted names of the Nodes that pass.
func nodes(w *world.World, passes func(*corev1.Node) bool) []string {
	var names []string
	for _, node := range w.Nodes() {
		if passes(&node) {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nodesOfPods returns the sorted names of the Nodes that the pods run on.
func nodesOfPods(w *world.World) []string {
	var names []string
	for _, pod := range w.Pods("shop") {
		names = append(names, pod.Spec.NodeName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func kubectl(w *world.World, args ...string) {
	w.T.Helper()
	if out, err := w.Kubectl(args...); err != nil {
		w.T.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// aws runs the AWS CLI against the simulated account.
func aws(w *world.World, args ...string) {
	w.T.Helper()
	cmd := exec.CommandContext(w.Context(), awsCLI, append([]string{"--endpoint-url", w.Lab.EC2SimURL(), "--output", "json"}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + w.T.TempDir()}
	for name, value := range w.Lab.Env() {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s", name, value))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.T.Fatalf("aws %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
