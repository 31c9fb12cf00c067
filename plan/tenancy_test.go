package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

const tenancyKey = "karpenter.k8s.aws/instance-tenancy"

// TestTenancy has the cases of Karpenter's own suite (pkg/providers/instancetype, Tenancy), and what follows from one plan
// having nodes of both.
func TestTenancy(t *testing.T) {
	t.Parallel()
	wants := func(tenancy string) func(*corev1.Pod) { return selects(tenancyKey, tenancy) }
	allows := func(tenancies ...string) func(*karpv1.NodePool) {
		return requires(tenancyKey, corev1.NodeSelectorOpIn, tenancies...)
	}
	for reason, test := range map[string]struct {
		pool []func(*karpv1.NodePool)
		pods []*corev1.Pod
		// want are the tenancies of the claims by the name of a pod; a pod without an entry gets no node.
		want map[string]string
	}{
		"nobody says anything: shared hardware": {pods: []*corev1.Pod{newPod("a", "1", "1Gi")}, want: map[string]string{"a": "default"}},
		"the pool allows both: shared hardware": {pool: []func(*karpv1.NodePool){allows("dedicated", "default")}, pods: []*corev1.Pod{newPod("a", "1", "1Gi")},
			want: map[string]string{"a": "default"}},
		"the pool wants dedicated": {pool: []func(*karpv1.NodePool){allows("dedicated")}, pods: []*corev1.Pod{newPod("a", "1", "1Gi")},
			want: map[string]string{"a": "dedicated"}},
		"the pool excludes shared hardware": {pool: []func(*karpv1.NodePool){requires(tenancyKey, corev1.NodeSelectorOpNotIn, "default")}, pods: []*corev1.Pod{newPod("a", "1", "1Gi")},
			want: map[string]string{"a": "dedicated"}},
		"a pod wants dedicated": {pods: []*corev1.Pod{newPod("a", "1", "1Gi", wants("dedicated"))}, want: map[string]string{"a": "dedicated"}},
		"a pod wants default":   {pods: []*corev1.Pod{newPod("a", "1", "1Gi", wants("default"))}, want: map[string]string{"a": "default"}},
		"two pods disagree": {pods: []*corev1.Pod{newPod("a", "1", "1Gi", wants("dedicated")), newPod("b", "1", "1Gi", wants("default"))},
			want: map[string]string{"a": "dedicated", "b": "default"}},
		"the pool wants dedicated, the pod default": {pool: []func(*karpv1.NodePool){allows("dedicated")}, pods: []*corev1.Pod{newPod("a", "1", "1Gi", wants("default"))}},
		"the pool wants default, the pod dedicated": {pool: []func(*karpv1.NodePool){allows("default")}, pods: []*corev1.Pod{newPod("a", "1", "1Gi", wants("dedicated"))}},
		"the pool wants what no instance has":       {pool: []func(*karpv1.NodePool){allows("host")}, pods: []*corev1.Pod{newPod("a", "1", "1Gi")}},
	} {
		pool := inPool(nodePool("p", append([]func(*karpv1.NodePool){onDemand()}, test.pool...)...), []*cloud.InstanceType{machineSpec{name: "m5.xlarge", cores: 4, memory: 16, price: 0.192}.instanceType()})
		names := map[string]string{}
		for _, pod := range test.pods {
			names[string(pod.UID)] = pod.Name
		}
		w := world{pods: test.pods, pools: []plan.Pool{pool}}
		p := plan.Pack(w.input())
		got := map[string]string{}
		for _, planned := range p.Claims {
			claim, err := planned.NodeClaim(pool.NodePool, "claim")
			if err != nil {
				t.Fatal(err)
			}
			if _, labelled := claim.Labels[tenancyKey]; labelled {
				t.Errorf("%s: the claim is labelled before its machine is known", reason)
			}
			if _, err := plan.Offerings(nodeclass.Labels(), claim, pool.Types, nil, now, ""); err != nil {
				t.Errorf("%s: the claim cannot be launched: %v", reason, err)
			}
			for _, uid := range planned.Pods {
				got[names[string(uid)]] = plan.Tenancy(nodeclass.Labels(), claim)
			}
		}
		if len(got) != len(test.want) || len(p.Unplaced) != len(test.pods)-len(test.want) {
			t.Errorf("%s: tenancies %v, want %v; left %v", reason, got, test.want, p.Unplaced)
		}
		for pod, want := range test.want {
			if got[pod] != want {
				t.Errorf("%s: pod %s gets %q, want %q", reason, pod, got[pod], want)
			}
		}
	}
}

// TestTenancyOfAClaim reads the tenancy of claims that people or Karpenter wrote.
func TestTenancyOfAClaim(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		label    string
		operator corev1.NodeSelectorOperator
		values   []string
		want     string
	}{
		"nothing is said":                  {want: "default"},
		"one value":                        {operator: corev1.NodeSelectorOpIn, values: []string{"dedicated"}, want: "dedicated"},
		"both: the shared one is cheaper":  {operator: corev1.NodeSelectorOpIn, values: []string{"dedicated", "default"}, want: "default"},
		"anything":                         {operator: corev1.NodeSelectorOpExists, want: "default"},
		"what no instance has":             {operator: corev1.NodeSelectorOpIn, values: []string{"host"}, want: "default"},
		"it is launched: the label counts": {label: "dedicated", operator: corev1.NodeSelectorOpExists, want: "dedicated"},
	} {
		claim := &karpv1.NodeClaim{}
		if test.label != "" {
			claim.Labels = map[string]string{tenancyKey: test.label}
		}
		if test.operator != "" {
			claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: tenancyKey, Operator: test.operator, Values: test.values}}
		}
		if got := model.Tenancy(nodeclass.Labels(), claim); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}
