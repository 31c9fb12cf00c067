package aws_test

import (
	"context"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestNodesOfEveryFamilyJoin launches an m5.large of each family on the simulated EC2, whose machines join only if their user
// data are as the family's images read them, and compares the Node with what was planned for.
func TestNodesOfEveryFamilyJoin(t *testing.T) {
	t.Parallel()
	own := &ec2sim.Image{Name: "own", Arch: "x86_64", Family: "AL2"}
	raid0 := awsv1.InstanceStorePolicyRAID0
	for name, tc := range map[string]struct {
		reason string
		alias  string // else own
		spec   awsv1.EC2NodeClassSpec
	}{
		"AL2023":             {reason: "the family that most have", alias: "al2023@latest"},
		"AL2":                {reason: "an image that its user has built", spec: awsv1.EC2NodeClassSpec{AMIFamily: awssdk.String("AL2")}},
		"Bottlerocket":       {reason: "settings in TOML", alias: "bottlerocket@latest"},
		"PinnedBottlerocket": {reason: "a pinned version, and an instance store, which an m5.large has none of", alias: "bottlerocket@v1.50.0", spec: awsv1.EC2NodeClassSpec{InstanceStorePolicy: &raid0}},
		"Windows2019":        {reason: "PowerShell", alias: "windows2019@latest"},
		"Windows2022":        {reason: "PowerShell and a number of pods", alias: "windows2022@latest", spec: awsv1.EC2NodeClassSpec{Kubelet: &awsv1.KubeletConfiguration{MaxPods: awssdk.Int32(20)}}},
		"Windows2025":        {reason: "PowerShell and commands of the user's", alias: "windows2025@latest", spec: awsv1.EC2NodeClassSpec{UserData: awssdk.String("Write-Host 'hello'")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			a := startAccount(t, ec2sim.Options{
				CatalogueFile: "testdata/catalogue.json", Kubernetes: client, ClusterEndpoint: "https://10.0.0.1", ClusterCA: []byte("PEM"),
				BootDelay: time.Millisecond, Images: []ec2sim.Image{*own},
			})
			class := a.NodeClass()
			class.Spec.AMIFamily, class.Spec.InstanceStorePolicy = tc.spec.AMIFamily, tc.spec.InstanceStorePolicy
			class.Spec.Kubelet, class.Spec.UserData = tc.spec.Kubelet, tc.spec.UserData
			class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: ec2sim.ImageID(own.Name)}}
			if tc.alias != "" {
				class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: tc.alias}}
			}
			a.resolve(a.provider, class)
			if !class.IsTrue("Ready") {
				t.Fatalf("%s: the class is not Ready: %+v", tc.reason, class.Status.Conditions)
			}
			planned := a.typeOf(class, "m5.large")
			request, err := a.provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{
				Group: "group", Count: 1, Class: class, NodePool: "default", CapacityType: karpv1.CapacityTypeOnDemand,
				Offerings: []cloud.OfferingKey{{InstanceType: "m5.large", Zone: class.Status.Subnets[0].Zone, CapacityType: karpv1.CapacityTypeOnDemand}},
				Labels:    map[string]string{"team": "search"}, Taints: []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
			})
			if err != nil {
				t.Fatal(err)
			}
			request.Token = "token"
			if _, err := a.provider.Launch(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			a.Advance(time.Minute)
			node := a.joined(client)
			for _, label := range []string{corev1.LabelOSStable, corev1.LabelWindowsBuild, corev1.LabelArchStable} {
				if node.Labels[label] != planned.Labels[label] {
					t.Errorf("%s: label %s is %q, planned is %q", tc.reason, label, node.Labels[label], planned.Labels[label])
				}
			}
			if node.Labels["team"] != "search" || node.Labels[karpv1.NodeDoNotSyncTaintsLabelKey] != "true" || len(node.Spec.Taints) != 3 {
				t.Errorf("%s: labels %v, taints %v", tc.reason, node.Labels, node.Spec.Taints)
			}
			for _, resource := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, awsv1.ResourcePrivateIPv4Address} {
				got, want := node.Status.Capacity[resource], planned.Capacity[resource]
				if got.Cmp(want) != 0 {
					t.Errorf("%s: capacity of %s is %s, planned is %s", tc.reason, resource, got.String(), want.String())
				}
			}
			for _, resource := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} {
				got, want := node.Status.Allocatable[resource], planned.Allocatable[resource]
				if got.Cmp(want) < 0 {
					t.Errorf("%s: only %s of %s are allocatable, planned are %s", tc.reason, got.String(), resource, want.String())
				}
			}
			// A file system takes a little of its volume.
			got, want := node.Status.Capacity.StorageEphemeral().Value(), planned.Capacity.StorageEphemeral().Value()
			if got > want || got < want*99/100 {
				t.Errorf("%s: pods can write %d bytes, planned are %d", tc.reason, got, want)
			}
		})
	}
}

// typeOf returns an instance type as it is planned for a class.
func (a *account) typeOf(class *awsv1.EC2NodeClass, name string) *cloud.InstanceType {
	a.t.Helper()
	kinds, err := a.provider.InstanceTypes(a.t.Context(), class)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, kind := range kinds {
		if kind.Name == name {
			return kind
		}
	}
	a.t.Fatalf("%s cannot be planned for", name)
	return nil
}

// joined waits for the cluster's first Node.
func (a *account) joined(client *fake.Clientset) *corev1.Node {
	a.t.Helper()
	var node *corev1.Node
	err := wait.PollUntilContextTimeout(a.t.Context(), 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) == 0 {
			return a.sim.Instances()[0].NodeReason != "", err
		}
		node = &nodes.Items[0]
		return true, nil
	})
	if err != nil || node == nil {
		a.t.Fatalf("no node has joined: %v %s", err, a.sim.Instances()[0].NodeReason)
	}
	return node
}
