package ec2sim_test

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

const nodeConfig = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: tenon, apiServerEndpoint: ENDPOINT, certificateAuthority: UEVN, cidr: 10.96.0.0/16}
  kubelet:
    config:
      registerWithTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]
    flags: ["--node-labels=karpenter.sh/nodepool=default"]
`

// startJoining starts a simulator on the real clock whose instances join the cluster at once.
func startJoining(t *testing.T, client kubernetes.Interface, opts ec2sim.Options) *account {
	t.Helper()
	opts.Kubernetes, opts.BootDelay, opts.Now = client, 20*time.Millisecond, time.Now
	sim, err := ec2sim.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	a := &account{sim: sim, cfg: aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	}}
	a.ec2 = ec2.NewFromConfig(a.cfg)
	return a
}

// launchJoining launches instances whose user data names the endpoint, and returns their ids.
func (a *account) launchJoining(t *testing.T, n int32, endpoint string) []string {
	t.Helper()
	userData := base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(nodeConfig, "ENDPOINT", endpoint)))
	out, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
		MinCount: aws.Int32(n), MaxCount: aws.Int32(n), InstanceType: "m5.large", ImageId: aws.String(a.image(t, "x86_64")),
		SubnetId: aws.String(a.subnets(t)["us-east-1a"]), UserData: aws.String(userData),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: "instance", Tags: []ec2types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, *i.InstanceId)
	}
	return ids
}

func await(t *testing.T, what string, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func nodes(t *testing.T, client kubernetes.Interface) []corev1.Node {
	t.Helper()
	list, err := client.CoreV1().Nodes().List(ctx(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// allNodes returns a condition that is true when every instance is in the phase.
func (a *account) allNodes(phase string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		return !slices.ContainsFunc(a.sim.Instances(), func(i ec2sim.Instance) bool { return i.Node != phase }), nil
	}
}

func TestInstancesJoinAndFallSilent(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	a := startJoining(t, client, ec2sim.Options{ClusterEndpoint: "https://api"})
	ids := a.launchJoining(t, 3, "https://api")
	await(t, "all have joined", a.allNodes("joined"))
	joined := nodes(t, client)
	if len(joined) != 3 {
		t.Fatalf("%d nodes joined, want 3", len(joined))
	}
	for _, n := range joined {
		_, id, _ := strings.Cut(n.Spec.ProviderID, "us-east-1a/")
		if !slices.Contains(ids, id) || n.Labels["karpenter.sh/nodepool"] != "default" || n.Labels[ec2sim.SimulatedLabel] != "true" {
			t.Errorf("node: %+v", n.ObjectMeta)
		}
	}
	// A deleted node does not come back while its instance runs. When the next instance has joined, the simulator has had
	// the chance to recreate it.
	if err := client.CoreV1().Nodes().Delete(ctx(t), joined[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.launchJoining(t, 1, "https://api")
	await(t, "the fourth has joined", a.allNodes("joined"))
	if got := len(nodes(t, client)); got != 3 {
		t.Errorf("%d nodes after one was deleted and one has joined, want 3", got)
	}
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
		t.Fatal(err)
	}
	await(t, "the ended ones are silent", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(a.sim.Instances(), func(i ec2sim.Instance) bool { return i.EndedAt != nil && i.Node != "stopped" }), nil
	})
	alive := 0
	for _, n := range nodes(t, client) {
		if n.Labels[ec2sim.SimulatedLabel] == "true" {
			alive++
		}
	}
	if total := len(nodes(t, client)); total != 3 || alive != 1 {
		t.Errorf("%d nodes are there and %d alive, want 3 and 1: the simulator must leave dead nodes to others", total, alive)
	}
}

func TestJoiningIsTriedAgain(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	failures := 1
	client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if failures > 0 {
			failures--
			return true, nil, apierrors.NewServiceUnavailable("not now")
		}
		return false, nil, nil
	})
	a := startJoining(t, client, ec2sim.Options{})
	a.launchJoining(t, 1, "https://api")
	await(t, "it has joined", a.allNodes("joined"))
	if got := len(nodes(t, client)); got != 1 {
		t.Errorf("%d nodes, want 1", got)
	}
}

func TestBootFaults(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	a := startJoining(t, client, ec2sim.Options{Faults: ec2sim.Faults{
		NeverRegister: []ec2sim.BootFault{{Occurrence: ec2sim.Occurrence{Times: 1}}}, NeverReady: []ec2sim.BootFault{{}},
	}, ClusterEndpoint: "https://api"})
	silent := a.launchJoining(t, 1, "https://api")
	a.launchJoining(t, 1, "https://api")
	misled := a.launchJoining(t, 1, "https://elsewhere")
	await(t, "the second has joined and the third has failed", func(context.Context) (bool, error) {
		phases := map[string]int{}
		for _, i := range a.sim.Instances() {
			phases[i.Node]++
			if i.Node == "failed" && (i.ID != misled[0] || !strings.Contains(i.NodeReason, "https://elsewhere")) {
				t.Errorf("instance failed: %+v", i)
			}
		}
		return phases["joined"] == 1 && phases["failed"] == 1, nil
	})
	joined := nodes(t, client)
	if len(joined) != 1 || strings.Contains(joined[0].Spec.ProviderID, silent[0]) {
		t.Errorf("nodes: %+v", joined)
	}
	readyAt, err := time.Parse(time.RFC3339, joined[0].Annotations[ec2sim.ReadyAtAnnotation])
	if err != nil || time.Until(readyAt) < 24*time.Hour {
		t.Errorf("a node that is never to be ready is ready at %v, %v", readyAt, err)
	}
}

// TestBootFaultsOfAnImage has the instances of one image never be ready, and those of another never register.
func TestBootFaultsOfAnImage(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	a := startJoining(t, client, ec2sim.Options{Faults: ec2sim.Faults{
		NeverRegister: []ec2sim.BootFault{{Image: "*arm64*"}}, NeverReady: []ec2sim.BootFault{{Image: "*x86_64*"}},
	}, ClusterEndpoint: "https://api"})
	a.launchJoining(t, 1, "https://api")
	await(t, "it has joined", a.allNodes("joined"))
	readyAt, err := time.Parse(time.RFC3339, nodes(t, client)[0].Annotations[ec2sim.ReadyAtAnnotation])
	if err != nil || time.Until(readyAt) < 24*time.Hour {
		t.Errorf("a node that is never to be ready is ready at %v, %v", readyAt, err)
	}
}

func TestPendingBootsSurviveARestart(t *testing.T) {
	t.Parallel()
	path := stateFile(t)
	first := start(t, ec2sim.Options{StateFile: path})
	first.clock.now = time.Now()
	first.launchJoining(t, 2, "https://api")
	if err := first.sim.Close(); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	a := startJoining(t, client, ec2sim.Options{StateFile: path})
	await(t, "they have joined", a.allNodes("joined"))
	if got := len(nodes(t, client)); got != 2 {
		t.Errorf("%d nodes, want 2", got)
	}
}

func TestAnIPv6ClusterWantsIPv6Addresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why   string
		count int32
		phase string
	}{
		{why: "a kubelet without an IPv6 address does not come up", count: 0, phase: "failed"},
		{why: "with one it joins by it", count: 1, phase: "joined"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			a := startJoining(t, client, ec2sim.Options{ClusterEndpoint: "https://api", IPv6: true})
			text := strings.ReplaceAll(strings.ReplaceAll(nodeConfig, "ENDPOINT", "https://api"), "10.96.0.0/16", "fd00::/108")
			network := ec2types.InstanceNetworkInterfaceSpecification{DeviceIndex: aws.Int32(0), SubnetId: aws.String(a.subnets(t)["us-east-1a"])}
			if tc.count > 0 {
				network.Ipv6AddressCount, network.PrimaryIpv6 = aws.Int32(tc.count), aws.Bool(true)
			}
			_, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
				MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", ImageId: aws.String(a.image(t, "x86_64")),
				UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(text))), NetworkInterfaces: []ec2types.InstanceNetworkInterfaceSpecification{network},
			})
			if err != nil {
				t.Fatal(err)
			}
			await(t, "the kubelet has tried", a.allNodes(tc.phase))
			for _, n := range nodes(t, client) {
				if ip := n.Status.Addresses[0].Address; !strings.Contains(ip, ":") {
					t.Errorf("the node's address is %s", ip)
				}
			}
		})
	}
}
