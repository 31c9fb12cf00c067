// Package examples_test applies every manifest of deploy/examples on a laboratory, and compares what comes up with what the
// manifest says: the instances as EC2 describes them, and the Nodes.
package examples_test

import (
	"encoding/base64"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/world"
)

const (
	nodePools = "../../deploy/examples/nodepools"
	workloads = "../../deploy/examples/workloads"
	// patience is how long the nodes of one example may take while all others come up as well.
	patience = 3 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 40)) }

// TestEveryExampleOfKarpenterHasOneHere compares the names of the examples with those in Karpenter's module.
func TestEveryExampleOfKarpenterHasOneHere(t *testing.T) {
	t.Parallel()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-C", "../../tools/karpenter", "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws").Output()
	if err != nil {
		t.Fatal(err)
	}
	for theirs, ours := range map[string]string{"v1": nodePools, "workloads": workloads} {
		if diff := cmp.Diff(names(t, filepath.Join(strings.TrimSpace(string(module)), "examples", theirs)), names(t, ours)); diff != "" {
			t.Errorf("examples (-Karpenter +Tenon):\n%s", diff)
		}
	}
}

// names returns the names of the manifests in a directory, without their extension.
func names(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("nothing found in %s: %v", dir, err)
	}
	for i := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(paths[i]), ".yaml")
	}
	slices.Sort(paths)
	return paths
}

// TestExamples applies all examples: first the NodePools, each with pods of its own, then the workloads on one NodePool.
func TestExamples(t *testing.T) {
	w := world.Start(t, world.Options{})
	w.DeletePool("default")
	for name, family := range map[string]string{"my-al2": "AL2", "my-image": "AL2023"} {
		w.Sim(http.MethodPost, "/_sim/image", ec2sim.Image{Name: name, Arch: "x86_64", Family: family, Tags: map[string]string{"image": name}}, nil)
	}
	w.Sim(http.MethodPost, "/_sim/calls/keep", map[string]any{"actions": []string{"CreateLaunchTemplate", "CreateFleet"}}, nil)
	a := newApplier(t, w)
	t.Run("nodepools", func(t *testing.T) {
		all := poolExamples()
		if diff := cmp.Diff(names(t, nodePools), slices.Sorted(maps.Keys(all))); diff != "" {
			t.Fatalf("examples (-there +tested):\n%s", diff)
		}
		for name, example := range all {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				example.play(a.of(t, filepath.Join(nodePools, name+".yaml")), name)
			})
		}
	})
	for _, pool := range a.pools(t) {
		w.DeletePool(pool)
	}
	w.AwaitNothing(patience)
	t.Run("workloads", func(t *testing.T) {
		w := w.For(t)
		w.Apply(everything)
		all := workloadExamples()
		if diff := cmp.Diff(names(t, workloads), slices.Sorted(maps.Keys(all))); diff != "" {
			t.Fatalf("examples (-there +tested):\n%s", diff)
		}
		play := func(t *testing.T, name string) {
			w, namespace := w.For(t), "workload-"+name // the NodePools' own pods are in namespaces of their names
			w.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}")
			if out, err := w.Kubectl("apply", "--namespace", namespace, "-f", filepath.Join(workloads, name+".yaml")); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			w.AwaitRunning(namespace, all[name].pods, patience)
			all[name].holds(t, nodesOf(w, namespace))
		}
		// The kube-scheduler places a pod on a node that has room rather than wait for one that the pod prefers.
		const preference = "prefer-arm"
		t.Run(preference, func(t *testing.T) { play(t, preference) })
		for name := range all {
			if name == preference {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, name)
			})
		}
	})
}

// everything is a NodePool for all kinds of workloads.
const everything = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: everything}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
`

// applier applies examples and looks at what comes up.
type applier struct {
	*world.World
	ec2 *ec2.Client
	// values are what the placeholders of the manifests stand for.
	values *strings.Replacer
}

func newApplier(t *testing.T, w *world.World) *applier {
	t.Helper()
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(w.Lab.EC2SimURL()), Credentials: credentials.NewStaticCredentialsProvider("admin", "secret", "")}
	described, err := eks.NewFromConfig(cfg).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String(w.Lab.Cluster())})
	if err != nil {
		t.Fatal(err)
	}
	cluster := described.Cluster
	return &applier{World: w, ec2: ec2.NewFromConfig(cfg), values: strings.NewReplacer("${CLUSTER_NAME}", w.Lab.Cluster(), "${CLUSTER_ENDPOINT}", *cluster.Endpoint,
		"${CLUSTER_CA}", *cluster.CertificateAuthority.Data, "${SERVICE_CIDR}", *cluster.KubernetesNetworkConfig.ServiceIpv4Cidr)}
}

// of applies a manifest and returns an applier for its test.
func (a *applier) of(t *testing.T, path string) *applier {
	t.Helper()
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mine := *a
	mine.World = a.For(t)
	mine.Apply(a.values.Replace(string(manifest)))
	return &mine
}

// pools returns the names of all NodePools.
func (a *applier) pools(t *testing.T) []string {
	t.Helper()
	var list karpv1.NodePoolList
	if err := a.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	return all
}

// run starts pods that only nodes of a NodePool may run, and waits until as many of them run as are expected.
func (a *applier) run(pool string, pods, running int, requests string) {
	a.T.Helper()
	a.Apply(flow.Workload{Namespace: pool, Replicas: pods, Requests: requests, Pool: pool}.Manifest())
	a.AwaitRunning(pool, running, patience)
}

// machine is a node of a NodePool, as Kubernetes and EC2 see it.
type machine struct {
	claim    karpv1.NodeClaim
	node     corev1.Node
	instance types.Instance
}

// machine returns the only node of a NodePool.
func (a *applier) machine(pool string) machine {
	a.T.Helper()
	var found []machine
	for _, claim := range a.Claims() {
		if claim.Labels[karpv1.NodePoolLabelKey] == pool {
			found = append(found, machine{claim: claim})
		}
	}
	if len(found) != 1 {
		a.T.Fatalf("NodePool %s has %d NodeClaims, want one", pool, len(found))
	}
	m := found[0]
	for _, node := range a.Nodes() {
		if node.Name == m.claim.Status.NodeName {
			m.node = node
		}
	}
	id := m.claim.Status.ProviderID[strings.LastIndexByte(m.claim.Status.ProviderID, '/')+1:]
	out, err := a.ec2.DescribeInstances(a.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		a.T.Fatal(err)
	}
	m.instance = out.Reservations[0].Instances[0]
	return m
}

// userData returns the user data of an EC2NodeClass's launch template.
func (a *applier) userData(class string) string {
	a.T.Helper()
	var calls []ec2sim.Call
	a.Sim(http.MethodGet, "/_sim/calls?action=CreateLaunchTemplate", nil, &calls)
	for _, call := range calls {
		if call.Code == "" && slices.Contains(slices.Collect(maps.Values(call.Parameters)), class) {
			text, err := base64.StdEncoding.DecodeString(call.Parameters["LaunchTemplateData.UserData"])
			if err != nil {
				a.T.Fatal(err)
			}
			return string(text)
		}
	}
	a.T.Fatalf("no launch template of the EC2NodeClass %s was created", class)
	return ""
}

// volumes returns the sizes in GiB of an instance's volumes, by device.
func (a *applier) volumes(instance types.Instance) map[string]int32 {
	a.T.Helper()
	out, err := a.ec2.DescribeVolumes(a.Context(), &ec2.DescribeVolumesInput{Filters: []types.Filter{{Name: aws.String("attachment.instance-id"), Values: []string{*instance.InstanceId}}}})
	if err != nil {
		a.T.Fatal(err)
	}
	sizes := map[string]int32{}
	for _, volume := range out.Volumes {
		if !aws.ToBool(volume.Encrypted) {
			a.T.Errorf("volume %s is not encrypted", *volume.Attachments[0].Device)
		}
		sizes[*volume.Attachments[0].Device] = *volume.Size
	}
	return sizes
}

// nodesOf returns the Nodes on which the pods of a namespace run, one for each pod.
func nodesOf(w *world.World, namespace string) []corev1.Node {
	w.T.Helper()
	named := map[string]corev1.Node{}
	for _, node := range w.Nodes() {
		named[node.Name] = node
	}
	var nodes []corev1.Node
	for _, pod := range w.Pods(namespace) {
		nodes = append(nodes, named[pod.Spec.NodeName])
	}
	return nodes
}
