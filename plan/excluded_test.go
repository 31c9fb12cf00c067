package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// TestReasonsNameWhatTheClassExcludes: where a node class excludes the instance types that a pod asks for, or their devices,
// the reason says so, and names the field.
func TestReasonsNameWhatTheClassExcludes(t *testing.T) {
	t.Parallel()
	const family = "karpenter.k8s.aws/instance-family"
	excluded := func(name, arch, device, why string) cloud.Exclusion {
		typ := machineSpec{name: name, arch: arch, cores: 2, memory: 8}.instanceType()
		return cloud.Exclusion{InstanceType: name, Labels: typ.Labels, Resource: corev1.ResourceName(device), Why: why}
	}
	const images, nitro, efa = "run none of the images that spec.amiSelectorTerms selects", "have no Nitro hypervisor, which spec.connectionTracking needs", "have EFA only if spec.networkInterfaces lists it"
	all := []cloud.Exclusion{
		excluded("m7g.large", "arm64", "", images), excluded("m7g.xlarge", "arm64", "", images), excluded("r7g.large", "arm64", "", images),
		excluded("a1.large", "arm64", "", nitro), excluded("m4.large", "amd64", "", nitro), excluded("m6i.large", "amd64", "vpc.amazonaws.com/efa", efa),
	}
	for reason, test := range map[string]struct {
		pod  *corev1.Pod
		pool *karpv1.NodePool
		want string
	}{
		"a type by name": {newPod("a", "1", "1Gi", selects(corev1.LabelInstanceTypeStable, "m4.large")), nodePool("p"),
			"no instance type has node.kubernetes.io/instance-type In [m4.large]: types such as m4.large " + nitro + " (EC2NodeClass default)"},
		"a family of several types": {newPod("a", "1", "1Gi", selects(family, "m7g")), nodePool("p"),
			"no instance type has karpenter.k8s.aws/instance-family In [m7g]: types such as m7g.large and m7g.xlarge " + images + " (EC2NodeClass default)"},
		"several reasons, that of the most types first": {newPod("a", "1", "1Gi", needs(in(family, "m7g", "a1"))), nodePool("p"),
			"no instance type has karpenter.k8s.aws/instance-family In [a1 m7g]: types such as m7g.large and m7g.xlarge " + images + "; types such as a1.large " + nitro + " (EC2NodeClass default)"},
		"the pool asks for them": {newPod("a", "1", "1Gi"), nodePool("p", requires(family, corev1.NodeSelectorOpIn, "m7g")),
			"no instance type and offering meets the pool's requirements: types such as m7g.large and m7g.xlarge " + images + " (EC2NodeClass default)"},
		"the pool asks for others": {newPod("a", "1", "1Gi", selects(family, "m7g")), nodePool("p", requires(family, corev1.NodeSelectorOpIn, "m6i")),
			"the pool requires karpenter.k8s.aws/instance-family In [m6i]"},
		"a type that nobody sells": {newPod("a", "1", "1Gi", selects(corev1.LabelInstanceTypeStable, "x9.large")), nodePool("p"),
			"no instance type has node.kubernetes.io/instance-type In [x9.large]"},
		"a device": {newPod("a", "1", "1Gi", asks("vpc.amazonaws.com/efa", "1")), nodePool("p"),
			"no instance type has vpc.amazonaws.com/efa: types such as m6i.large " + efa + " (EC2NodeClass default)"},
		"a label that the pool does not define": {newPod("a", "1", "1Gi", selects("team", "x")), nodePool("p"), "team In [x] is not met: the pool does not define the label"},
	} {
		pool := inPool(test.pool, smallCatalogue())
		pool.Excluded = all
		w := world{pods: []*corev1.Pod{test.pod}, pools: []plan.Pool{pool}}
		p := plan.Pack(w.input())
		check(t, &w, p)
		if len(p.Unplaced) != 1 || p.Unplaced[0].Reasons[0].Message != test.want {
			t.Errorf("%s: %+v\nwant %s", reason, p.Unplaced, test.want)
		}
	}
}
