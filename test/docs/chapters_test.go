package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/test/world"
)

// chapter is what a document takes for granted.
type chapter struct {
	// before makes what is there before the first command; after makes again what others need and the document has removed.
	before, after func(t *testing.T, w *world.World, dir string)
	// env is what the document says that one sets.
	env []string
	// instead are expressions for what the document names as an example, and what there is on the laboratory instead.
	instead [][2]string
}

// shop is how documents call an example of a cluster, in an example of a region.
var shop = [][2]string{{`--cluster-name shop`, `--cluster-name "$$CLUSTER_NAME"`}, {`eu-west-1`, `us-east-1`}}

// chapters are the documents that take something for granted, or name examples.
var chapters = map[string]chapter{
	"deploy/iam/README.md": {instead: [][2]string{{`CLUSTER_NAME=my-cluster`, ``}}},
	"deploy/temporal/README.md": {before: installed, instead: [][2]string{{`--set temporal.tls.enabled=true`, `--set temporal.tls.enabled=true --set temporal.evaluation.enabled=false`}},
		env: []string{"TEMPORAL_DATABASE_PASSWORD=secret", "TEMPORAL_CHARTS=https://charts.example.com"}},
	"docs/deploying.md": {before: uninstalled},
	"docs/from-cluster-autoscaler.md": {before: nodeGroups, instead: append([][2]string{
		{`-l eks.amazonaws.com/nodegroup`, `-l eks.amazonaws.com/nodegroup=web-a`}}, shop...)},
	"docs/migrating.md": {before: older},
	"docs/observing.md": {instead: [][2]string{{`--cluster my-eks-cluster`, `--cluster "$$CLUSTER_NAME"`}}},
	"docs/rollouts.md":  {before: rolloutPool},
	"docs/top.md":       {instead: [][2]string{{`export TENON_CLUSTER=.*`, `true`}}},
	"docs/page.md": {before: webRuns, instead: [][2]string{
		{`ip-10-0-1-2.ec2.internal`, `NODE`}, {`default-7g5xk`, `CLAIM`}, {`pod shop/web-0`, `pod default/POD`},
		{` \.\.\.$`, ``}, {`--pool web`, `--pool default`}}},
	"docs/operations.md":   {before: installed},
	"docs/start-eks.md":    {before: uninstalled, after: examplePool, instead: [][2]string{{`CLUSTER_NAME=tenon-try `, ``}}},
	"docs/start-laptop.md": {before: webRuns, after: webRuns},
	"docs/stopping.md":     {before: gpuPool, instead: [][2]string{{`tenon replace ip-10-0-1-17.ec2.internal`, `tenon replace NODE`}, {`expire --pool web`, `expire --pool default`}}},
	"docs/tasks.md":        {before: webRuns},
	"docs/troubleshooting.md": {before: stuckDrain, after: webRuns, instead: [][2]string{
		{`drain (deadline|force) NODE`, `drain $1 "$$DRAINING"`}}},
	"docs/uninstalling.md": {instead: [][2]string{{`eu-west-1`, `us-east-1`}}},
	"docs/using.md":        {before: webRuns, instead: [][2]string{{`\bNAME\b`, `CLAIM`}}},
}

// rolloutPool has a NodePool whose drift is rolled out in steps.
func rolloutPool(t *testing.T, w *world.World, _ string) {
	w.Apply(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web, annotations: {tenon.sh/rollout: "1,10%,100%"}}
spec:
  limits: {nodes: "0"}
  template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}
`)
	kubectl(t, w, "wait", "--for=condition=Rollout", "nodepool/web", "--timeout=2m")
}

// webRuns has the example's pods run.
func webRuns(t *testing.T, w *world.World, _ string) {
	kubectl(t, w, "apply", "-f", filepath.Join(root, "deploy/examples/workload-web.yaml"))
	kubectl(t, w, "rollout", "status", "deployment/web", "--timeout=10m")
}

// examplePool has the NodePool and the EC2NodeClass of the examples.
func examplePool(t *testing.T, w *world.World, _ string) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/examples/default-nodeclass.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.Apply(strings.ReplaceAll(string(text), "${CLUSTER_NAME}", w.Lab.Cluster()))
	kubectl(t, w, "apply", "-f", filepath.Join(root, "deploy/examples/default-nodepool.yaml"))
}

// stuckDrain has a drain that a budget blocks. The environment of the document names the node.
func stuckDrain(t *testing.T, w *world.World, dir string) {
	webRuns(t, w, dir)
	kubectl(t, w, "patch", "poddisruptionbudget", "web", "--type=merge", "--patch", `{"spec": {"maxUnavailable": 0}}`)
	node := serving(w)
	if out, err := w.Tenon("drain", node, "--keep"); err != nil {
		t.Fatalf("drain: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, ".state"), []byte("export DRAINING="+node+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// gpuPool has a second NodePool.
func gpuPool(t *testing.T, w *world.World, _ string) {
	kubectl(t, w, "apply", "-f", filepath.Join(root, "deploy/examples/gpu-nodepool.yaml"))
}

// uninstalled has no release of the chart, and no namespace for Temporal.
func uninstalled(t *testing.T, w *world.World, _ string) {
	helm(t, w, "uninstall", "tenon", "--namespace", "kube-system", "--ignore-not-found")
	kubectl(t, w, "delete", "namespace", "temporal", "--ignore-not-found")
}

// installed has a release of the chart.
func installed(t *testing.T, w *world.World, _ string) {
	uninstalled(t, w, "")
	helm(t, w, "install", "tenon", filepath.Join(root, "deploy/chart"), "--namespace", "kube-system", "--set", "fullnameOverride=documented",
		"--set", "settings.clusterName="+w.Lab.Cluster(), "--set", "temporal.insecure=true")
}

// older has manifests of an older Karpenter.
func older(t *testing.T, _ *world.World, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"old/pool.yaml": `apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: older}
spec:
  providerRef: {name: older}
  ttlSecondsAfterEmpty: 30
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: older}
spec:
  instanceProfile: nodes
  subnetSelector: {karpenter.sh/discovery: shop}
  securityGroupSelector: {karpenter.sh/discovery: shop}
`,
		"workloads.yaml": `apiVersion: v1
kind: Pod
metadata: {name: one, namespace: default}
spec:
  containers: [{name: one, image: one, resources: {requests: {cpu: "1"}}}]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// nodeGroups has two managed node groups with a node each.
func nodeGroups(t *testing.T, w *world.World, _ string) {
	for name, subnet := range map[string]string{"web-a": "subnet-0a5e7e0000000001", "web-b": "subnet-0a5e7e0000000002"} {
		cmd := w.Command("version")
		cmd.Path, cmd.Args = "/usr/bin/aws", []string{"aws", "--endpoint-url", w.Lab.EC2SimURL(), "eks", "create-nodegroup", "--cluster-name", w.Lab.Cluster(), "--nodegroup-name", name, "--subnets", subnet,
			"--node-role", "arn:aws:iam::123456789012:role/KarpenterNodeRole-" + w.Lab.Cluster(), "--instance-types", "m5.large", "--ami-type", "AL2023_x86_64_STANDARD",
			"--scaling-config", "minSize=0,maxSize=3,desiredSize=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	w.Await("a node of each group", time.Minute, func() (bool, string) {
		groups := map[string]bool{}
		for _, node := range w.Nodes() {
			if group := node.Labels["eks.amazonaws.com/nodegroup"]; group != "" {
				groups[group] = true
			}
		}
		return len(groups) == 2, "not all are there"
	})
}

func kubectl(t *testing.T, w *world.World, args ...string) {
	t.Helper()
	if out, err := w.Kubectl(args...); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

func helm(t *testing.T, w *world.World, args ...string) {
	t.Helper()
	cmd := w.Command("version")
	cmd.Path, cmd.Args = filepath.Join(binaries(t), "helm"), append([]string{"helm"}, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, out)
	}
}
