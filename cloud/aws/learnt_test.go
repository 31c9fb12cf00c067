package aws_test

import (
	"testing"
	"time"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
)

// TestLearntMemory has what Karpenter's own suites demand (pkg/controllers/providers/instancetype/capacity, and Capacity in
// pkg/providers/instancetype), for what planning then sees of an m5.large.
func TestLearntMemory(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	const gib = int64(1) << 30
	estimate, estimatedFree := memoryOf(t, a.provider, class)
	kept := estimate - estimatedFree
	request, err := a.provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{Group: "g", Count: 1, Class: class, CapacityType: "on-demand",
		Offerings: []cloud.OfferingKey{{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}}})
	if err != nil {
		t.Fatal(err)
	}
	image := detailsOf(t, request).Overrides[0].Image
	of := func(bytes int64) cloud.NodeReport {
		return cloud.NodeReport{InstanceType: "m5.large", Image: image, Memory: bytes}
	}
	var reports []cloud.NodeReport
	a.provider.LearnFrom(func() []cloud.NodeReport { return reports })
	for _, step := range []struct {
		reason  string
		reports []cloud.NodeReport
		want    int64
	}{
		{reason: "no node has registered: the estimate", want: estimate},
		{reason: "a node of another type", reports: []cloud.NodeReport{{InstanceType: "m5.xlarge", Image: image, Memory: 7 * gib}}, want: estimate},
		{reason: "a node of another image", reports: []cloud.NodeReport{{InstanceType: "m5.large", Image: "ami-0", Memory: 7 * gib}}, want: estimate},
		{reason: "a kubelet that has reported nothing yet", reports: []cloud.NodeReport{of(0)}, want: estimate},
		{reason: "the first node: more than was estimated", reports: []cloud.NodeReport{of(estimate + 100<<20)}, want: estimate + 100<<20},
		{reason: "a node with more counts no more", reports: []cloud.NodeReport{of(estimate + 200<<20)}, want: estimate + 100<<20},
		{reason: "a node with less", reports: []cloud.NodeReport{of(estimate + 200<<20), of(6 * gib)}, want: 6 * gib},
		{reason: "all nodes have gone, and what they taught remains", want: 6 * gib},
		{reason: "a node that keeps everything for itself", reports: []cloud.NodeReport{of(kept / 2)}, want: kept / 2},
	} {
		reports = step.reports
		a.Advance(time.Minute)
		capacity, allocatable := memoryOf(t, a.provider, class)
		if capacity != step.want || allocatable != max(0, step.want-kept) {
			t.Errorf("%s: capacity %d, allocatable %d; want %d, %d", step.reason, capacity, allocatable, step.want, max(0, step.want-kept))
		}
	}

	reports = nil
	restarted := a.newProvider()
	restarted.LearnFrom(func() []cloud.NodeReport { return []cloud.NodeReport{of(6 * gib)} })
	if capacity, _ := memoryOf(t, restarted, class); capacity != 6*gib {
		t.Errorf("a restarted worker plans with %d bytes; the nodes that run have %d", capacity, 6*gib)
	}
	a.Advance(59 * 24 * time.Hour)
	memoryOf(t, restarted, class) // a report keeps it from being forgotten
	a.Advance(2 * 24 * time.Hour)
	if capacity, _ := memoryOf(t, restarted, class); capacity != 6*gib {
		t.Errorf("forgotten while a node still reports it: %d", capacity)
	}
	if capacity, _ := memoryOf(t, a.provider, class); capacity != estimate {
		t.Errorf("%d bytes count two months after the last node; want the estimate, %d", capacity, estimate)
	}
}

// memoryOf returns the memory of an m5.large in bytes: its capacity, and what is left for pods.
func memoryOf(t *testing.T, provider *aws.Provider, class *awsv1.EC2NodeClass) (capacity, allocatable int64) {
	t.Helper()
	types, err := provider.InstanceTypes(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range types {
		if kind.Name == "m5.large" {
			return kind.Capacity.Memory().Value(), kind.Allocatable.Memory().Value()
		}
	}
	t.Fatal("m5.large is not offered")
	return 0, 0
}
