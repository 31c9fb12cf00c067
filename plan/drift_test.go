package plan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/lifecycle"
)

// driftCase is a claim that a pool has made, and the changes since to the pool and to what is sold.
type driftCase struct {
	why   string
	pool  func(*karpv1.NodePool)
	claim func(*karpv1.NodeClaim)
	types map[string]*cloud.InstanceType
	// reason and says are the drift's reason and a part of its message.
	reason, says string
}

func TestDrift(t *testing.T) {
	t.Parallel()
	template := func(change func(*karpv1.NodeClaimTemplate)) func(*karpv1.NodePool) {
		return func(p *karpv1.NodePool) { change(&p.Spec.Template) }
	}
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) func(*karpv1.NodePool) {
		return func(p *karpv1.NodePool) {
			p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
				karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values})
		}
	}
	m5 := machineSpec{name: "m5.large", cores: 2, memory: 8, price: 0.1}.instanceType()
	c5 := machineSpec{name: "c5.large", cores: 2, memory: 4, price: 0.1}.instanceType()
	elsewhere := machineSpec{name: "m5.large", cores: 2, memory: 8, price: 0.1, zones: []string{"us-east-1b"}}.instanceType()
	old := func(c *karpv1.NodeClaim) { c.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) }
	for _, row := range []driftCase{
		{why: "a claim is what its pool has just made"},
		{why: "limits, budgets and weight are no part of the template", pool: func(p *karpv1.NodePool) {
			p.Spec.Weight = new(int32(7))
			p.Spec.Limits = karpv1.Limits{}
		}},

		{why: "a NodeOverlay changes what is bought, and no node that was", types: map[string]*cloud.InstanceType{"m5.large": m5, "c5.large": c5}, claim: func(c *karpv1.NodeClaim) {
			old(c)
			c.Annotations[v1alpha1.PriceOverlayAppliedAnnotationKey] = "true"
			c.Annotations[v1alpha1.CapacityOverlayAppliedAnnotationKey] = "true"
		}},
		{why: "a label more", pool: template(func(x *karpv1.NodeClaimTemplate) { x.Labels = map[string]string{"team": "blue", "tier": "web"} }),
			reason: plan.DriftNodePool, says: `spec.template.metadata.labels[tier] is "web" and was not there`},
		{why: "a label with another value", pool: template(func(x *karpv1.NodeClaimTemplate) { x.Labels["team"] = "red" }),
			reason: plan.DriftNodePool, says: `labels[team] is "red" and was "blue"`},
		{why: "a label less", pool: template(func(x *karpv1.NodeClaimTemplate) { x.Labels = nil }),
			reason: plan.DriftNodePool, says: `labels[team] is not there and was "blue"`},
		{why: "an annotation", pool: template(func(x *karpv1.NodeClaimTemplate) { x.Annotations = map[string]string{"note": "x"} }),
			reason: plan.DriftNodePool, says: "metadata.annotations[note]"},
		{why: "a taint", pool: template(func(x *karpv1.NodeClaimTemplate) {
			x.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}), reason: plan.DriftNodePool, says: "spec.taints is [dedicated:NoSchedule] and was []"},
		{why: "a startup taint", pool: template(func(x *karpv1.NodeClaimTemplate) {
			x.Spec.StartupTaints = []corev1.Taint{{Key: "cilium", Effect: corev1.TaintEffectNoExecute}}
		}), reason: plan.DriftNodePool, says: "spec.startupTaints"},
		{why: "another life span", pool: template(func(x *karpv1.NodeClaimTemplate) {
			x.Spec.ExpireAfter = karpv1.NewNillableDuration(24 * time.Hour)
		}), reason: plan.DriftNodePool, says: "spec.expireAfter is 24h0m0s and was 720h0m0s"},
		{why: "a grace period", pool: template(func(x *karpv1.NodeClaimTemplate) {
			x.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
		}), reason: plan.DriftNodePool, says: "spec.terminationGracePeriod is 1h0m0s and was not set"},
		{why: "another class", pool: template(func(x *karpv1.NodeClaimTemplate) { x.Spec.NodeClassRef.Name = "other" }),
			reason: plan.DriftNodePool, says: "spec.nodeClassRef is EC2NodeClass other and was EC2NodeClass default"},
		{why: "a hash of another version is not compared", pool: template(func(x *karpv1.NodeClaimTemplate) { x.Labels["team"] = "red" }),
			claim: func(c *karpv1.NodeClaim) { c.Annotations[karpv1.NodePoolHashVersionAnnotationKey] = "v2" }},
		{why: "a claim without a hash, made by hand, is not compared", pool: template(func(x *karpv1.NodeClaimTemplate) { x.Labels["team"] = "red" }),
			claim: func(c *karpv1.NodeClaim) { c.Annotations = nil }},
		{why: "what changed and cannot be told apart is told by the hash", claim: func(c *karpv1.NodeClaim) { c.Annotations[karpv1.NodePoolHashAnnotationKey] = "17" },
			reason: plan.DriftNodePool, says: "hash 17, now "},

		{why: "its zone is not wanted any more", pool: requirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "us-east-1b", "us-east-1c"),
			reason: plan.DriftRequirements, says: `topology.kubernetes.io/zone In [us-east-1b us-east-1c] is asked for, and the node has "us-east-1a"`},
		{why: "its zone is one of those that are", pool: requirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "us-east-1a", "us-east-1c")},
		{why: "its machine is too small", pool: requirement("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpGt, "2"), reason: plan.DriftRequirements, says: "instance-cpu Gt 2"},
		{why: "its machine is just large enough", pool: requirement("karpenter.k8s.aws/instance-cpu", karpv1.NodeSelectorOpGte, "2")},
		{why: "a deprecated name of a label means the label", pool: requirement("beta.kubernetes.io/arch", corev1.NodeSelectorOpIn, "arm64"), reason: plan.DriftRequirements, says: "kubernetes.io/arch"},
		{why: "a label it should not have", pool: requirement("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpDoesNotExist), reason: plan.DriftRequirements, says: "instance-family"},
		{why: "a label it has not and should not have", pool: requirement("karpenter.k8s.aws/instance-gpu-count", corev1.NodeSelectorOpDoesNotExist)},
		{why: "a label it has not may be any but some", pool: requirement("rack", corev1.NodeSelectorOpNotIn, "a")},
		{why: "a custom label that came after the node", pool: requirement("rack", corev1.NodeSelectorOpExists), reason: plan.DriftRequirements, says: "the node has no such label"},
		{why: "a custom label that was left open when the node was made", pool: requirement("rack", corev1.NodeSelectorOpExists), claim: func(c *karpv1.NodeClaim) {
			c.Spec.Requirements = append(c.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: "rack", Operator: corev1.NodeSelectorOpExists})
		}},
		{why: "a changed template comes before requirements", pool: func(p *karpv1.NodePool) {
			p.Spec.Template.Labels = map[string]string{"team": "red"}
			requirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "us-east-1b")(p)
		}, reason: plan.DriftNodePool},

		{why: "its type is sold", claim: old, types: map[string]*cloud.InstanceType{"m5.large": m5}},
		{why: "its type is not sold", claim: old, types: map[string]*cloud.InstanceType{"c5.large": c5}, reason: lifecycle.DriftInstanceType, says: "m5.large"},
		{why: "a young node is left alone", types: map[string]*cloud.InstanceType{"c5.large": c5}},
		{why: "its type is sold elsewhere", claim: old, types: map[string]*cloud.InstanceType{"m5.large": elsewhere}, reason: lifecycle.DriftInstanceType, says: "us-east-1a"},
		{why: "a reservation that ran out leaves an on-demand node", types: map[string]*cloud.InstanceType{"m5.large": m5}, claim: func(c *karpv1.NodeClaim) {
			old(c)
			c.Labels[karpv1.CapacityTypeLabelKey] = karpv1.CapacityTypeReserved
		}},
		{why: "what is sold is not known", claim: old},
		{why: "requirements come before the type", claim: old, types: map[string]*cloud.InstanceType{"c5.large": c5},
			pool: requirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "us-east-1b"), reason: plan.DriftRequirements},
	} {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			row.check(t)
		})
	}
}

func (row *driftCase) check(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Labels = map[string]string{"team": "blue"}
	pool.Spec.Template.Spec = karpv1.NodeClaimTemplateSpec{
		NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
		ExpireAfter:  karpv1.NewNillableDuration(720 * time.Hour),
	}
	made := plan.Claim{NodePool: "default", NodeClass: "default"}
	claim, err := made.NodeClaim(pool, "default-abcde")
	if err != nil {
		t.Fatal(err)
	}
	claim.CreationTimestamp = metav1.NewTime(now.Add(-59 * time.Minute))
	for key, value := range map[string]string{
		corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: "us-east-1a", karpv1.CapacityTypeLabelKey: "on-demand",
		corev1.LabelArchStable: "amd64", "karpenter.k8s.aws/instance-cpu": "2", "karpenter.k8s.aws/instance-family": "m5",
	} {
		claim.Labels[key] = value
	}
	if row.claim != nil {
		row.claim(claim)
	}
	pool = pool.DeepCopy()
	if row.pool != nil {
		row.pool(pool)
	}
	mold, err := plan.NewMold(pool)
	if err != nil {
		t.Fatal(err)
	}
	found := mold.Drift(claim, row.types, now)
	if found.Reason != row.reason || !strings.Contains(found.Message, row.says) || (found.Message == "") != (row.reason == "") {
		t.Errorf("drift is %+v, want %s saying %q", found, row.reason, row.says)
	}
}

func TestConsolidatable(t *testing.T) {
	t.Parallel()
	initialized := now.Add(-10 * time.Minute)
	for _, row := range []struct {
		why    string
		after  karpv1.NillableDuration
		change func(*plan.Node, *karpv1.NodePool)
		holds  bool
		when   time.Time
	}{
		{why: "quiet since it was initialized", after: karpv1.NewNillableDuration(5 * time.Minute), holds: true, when: time.Time{}},
		{why: "at the very moment", after: karpv1.NewNillableDuration(10 * time.Minute), holds: true, when: time.Time{}},
		{why: "not long enough", after: karpv1.NewNillableDuration(15 * time.Minute), holds: false, when: initialized.Add(15 * time.Minute)},
		{why: "a pod came in between", after: karpv1.NewNillableDuration(5 * time.Minute),
			change: func(n *plan.Node, _ *karpv1.NodePool) { n.LastPodEvent = now.Add(-time.Minute) }, holds: false, when: now.Add(4 * time.Minute)},
		{why: "no wait is asked for", after: karpv1.NewNillableDuration(0),
			change: func(n *plan.Node, _ *karpv1.NodePool) { n.LastPodEvent = now }, holds: true, when: time.Time{}},
		{why: "never", after: karpv1.NillableDuration{}, holds: false, when: time.Time{}},
		{why: "not initialized", after: karpv1.NewNillableDuration(0),
			change: func(n *plan.Node, _ *karpv1.NodePool) { n.Initialized = false }, holds: false, when: time.Time{}},
		{why: "static pools are not consolidated", after: karpv1.NewNillableDuration(0),
			change: func(_ *plan.Node, p *karpv1.NodePool) { p.Spec.Replicas = new(int64(2)) }, holds: false, when: time.Time{}},
	} {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			node, pool := &plan.Node{Initialized: true, InitializedAt: initialized}, &karpv1.NodePool{}
			pool.Spec.Disruption.ConsolidateAfter = row.after
			if row.change != nil {
				row.change(node, pool)
			}
			if holds, when := node.Consolidatable(pool, now); holds != row.holds || !when.Equal(row.when) {
				t.Errorf("%v, and then at %v; want %v, and then at %v", holds, when, row.holds, row.when)
			}
		})
	}
}
