package v1_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestNodePoolValidate(t *testing.T) {
	t.Parallel()
	labels := func(key, value string) func(*v1.NodePool) {
		return func(p *v1.NodePool) { p.Spec.Template.Labels = map[string]string{key: value} }
	}
	requirement := func(r v1.NodeSelectorRequirementWithMinValues) func(*v1.NodePool) {
		return func(p *v1.NodePool) {
			p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{r}
		}
	}
	budget := func(b v1.Budget) func(*v1.NodePool) {
		return func(p *v1.NodePool) { p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "1"}, b} }
	}
	hour := &metav1.Duration{Duration: time.Hour}
	const (
		labelPath       = "spec.template.metadata.labels"
		requirementPath = "spec.template.spec.requirements[0]"
		budgetPath      = "spec.disruption.budgets[1]"
	)
	for _, tc := range []struct {
		reason string
		change func(*v1.NodePool)
		// want is empty for a valid pool, else the field and a part of the one error's text.
		wantField, wantText string
	}{
		{reason: "nothing to complain about", change: func(*v1.NodePool) {}},
		{reason: "a label of one's own", change: labels("example.com/team", "web")},
		{reason: "a label without domain", change: labels("team", "web")},
		{reason: "well-known labels may be set", change: labels(corev1.LabelTopologyZone, "us-east-1a")},
		{reason: "so may those of the provider", change: labels("karpenter.k8s.aws/instance-category", "m")},
		{reason: "kOps needs its domain", change: labels("kops.k8s.io/instancegroup", "nodes")},
		{reason: "node.kubernetes.io is open to operators", change: labels("node.kubernetes.io/pool", "a")},
		{reason: "so are domains below node-restriction.kubernetes.io", change: labels("team.node-restriction.kubernetes.io/x", "a")},
		{reason: "a domain that only looks alike", change: labels("notk8s.io/x", "a")},
		{"kubelet's domain", labels("kubernetes.io/team", "web"), labelPath + "[kubernetes.io/team]", `domain "kubernetes.io" is restricted`},
		{"a domain below k8s.io", labels("foo.k8s.io/team", "web"), labelPath + "[foo.k8s.io/team]", `domain "k8s.io" is restricted`},
		{"Karpenter's domain", labels("karpenter.sh/team", "web"), labelPath + "[karpenter.sh/team]", `domain "karpenter.sh" is restricted`},
		{"a domain below Karpenter's", labels("x.karpenter.sh/team", "web"), labelPath + "[x.karpenter.sh/team]", "restricted"},
		{"the provider's domain", labels("karpenter.k8s.aws/team", "web"), labelPath + "[karpenter.k8s.aws/team]", `domain "karpenter.k8s.aws" is restricted`},
		{"the pool's name is not for choosing", labels("karpenter.sh/nodepool", "x"), labelPath + "[karpenter.sh/nodepool]", "remove the label"},
		{"the host's name is not known", labels(corev1.LabelHostname, "x"), labelPath + "[kubernetes.io/hostname]", "restricted"},
		{"a key that is no label", labels("a b", "x"), labelPath + "[a b]", "name part must consist of"},
		{"a value that is no label value", labels("a", "x y"), labelPath + "[a]", "a valid label must be"},

		{
			"two taints with the same key and effect",
			func(p *v1.NodePool) {
				p.Spec.Template.Spec.Taints = []corev1.Taint{
					{Key: "a", Value: "1", Effect: corev1.TaintEffectNoSchedule}, {Key: "a", Value: "2", Effect: corev1.TaintEffectNoSchedule},
				}
			},
			"spec.template.spec.taints[1]", "spec.template.spec.taints[0] has the same key and effect",
		},
		{
			"a startup taint with key and effect of a taint",
			func(p *v1.NodePool) {
				p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
				p.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
			},
			"spec.template.spec.startupTaints[0]", "spec.template.spec.taints[0]",
		},
		{
			reason: "the same key with another effect is another taint",
			change: func(p *v1.NodePool) {
				p.Spec.Template.Spec.Taints = []corev1.Taint{
					{Key: "a", Effect: corev1.TaintEffectNoExecute}, {Key: "a", Effect: corev1.TaintEffectNoSchedule},
				}
			},
		},
		{
			"an effect that does not exist",
			func(p *v1.NodePool) { p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "Evict"}} },
			"spec.template.spec.taints[0].effect", "Unsupported value",
		},
		{
			"a taint without key",
			func(p *v1.NodePool) {
				p.Spec.Template.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}}
			},
			"spec.template.spec.taints[0].key", "name part must be non-empty",
		},

		{
			"a requirement in a restricted domain",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: "kubernetes.io/x", Operator: corev1.NodeSelectorOpExists}),
			requirementPath + ".key", "restricted",
		},
		{
			reason: "a deprecated key stands for the well-known one",
			change: requirement(v1.NodeSelectorRequirementWithMinValues{Key: "beta.kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}),
		},
		{
			"a requirement on the pool's own name",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: v1.NodePoolLabelKey, Operator: corev1.NodeSelectorOpExists}),
			requirementPath + ".key", "remove the requirement",
		},
		{
			"In without values",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: "a", Operator: corev1.NodeSelectorOpIn}),
			requirementPath + ".values", "at least one value",
		},
		{
			"Gt with two values",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: "a", Operator: corev1.NodeSelectorOpGt, Values: []string{"1", "2"}}),
			requirementPath + ".values", "exactly one value",
		},
		{
			"Lte with a word",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: "a", Operator: v1.NodeSelectorOpLte, Values: []string{"many"}}),
			requirementPath + ".values[0]", "an integer",
		},
		{
			"a value that no label can have",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: "a", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"ok", "-"}}),
			requirementPath + ".values[1]", "a valid label must be",
		},
		{
			"an operator that does not exist",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: "a", Operator: "Like", Values: []string{"1"}}),
			requirementPath + ".operator", "Unsupported value",
		},
		{
			"capacity types that do not exist",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"ondemand"}}),
			requirementPath + ".values", `"on-demand"`,
		},
		{
			reason: "one capacity type that exists is enough",
			change: requirement(v1.NodeSelectorRequirementWithMinValues{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"ondemand", "spot"}}),
		},
		{
			"minValues beyond the values that exist",
			requirement(v1.NodeSelectorRequirementWithMinValues{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"ondemand", "spot"}, MinValues: ptr.To(2)}),
			requirementPath + ".minValues", "must not be more than the 1",
		},

		{reason: "a schedule with a duration", change: budget(v1.Budget{Nodes: "0", Schedule: ptr.To("0 9 * * mon-fri"), Duration: hour})},
		{"a schedule the pattern lets through", budget(v1.Budget{Nodes: "0", Schedule: ptr.To("61 9 * * *"), Duration: hour}), budgetPath + ".schedule", "cron expression of five fields"},
		{"a duration of nothing", budget(v1.Budget{Nodes: "0", Schedule: ptr.To("@daily"), Duration: &metav1.Duration{}}), budgetPath + ".duration", "longer than zero"},
		{"half a schedule", budget(v1.Budget{Nodes: "0", Duration: hour}), budgetPath, "set together"},
		{"more than all", budget(v1.Budget{Nodes: "101%"}), budgetPath + ".nodes", "percentage"},
	} {
		pool := readNodePool(t, "nodepool-rich")
		tc.change(pool)
		checkErrors(t, tc.reason, pool.Validate(), tc.wantField, tc.wantText)
	}
}

func TestNodeClaimValidate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason              string
		spec                v1.NodeClaimSpec
		wantField, wantText string
	}{
		{reason: "the pool's name is a requirement of its claims", spec: v1.NodeClaimSpec{Requirements: []v1.NodeSelectorRequirementWithMinValues{
			{Key: v1.NodePoolLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"default"}},
		}}},
		{"duplicate taints", v1.NodeClaimSpec{
			Taints:        []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}},
			StartupTaints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}},
		}, "spec.startupTaints[0]", "spec.taints[0]"},
		{"a restricted domain", v1.NodeClaimSpec{Requirements: []v1.NodeSelectorRequirementWithMinValues{
			{Key: "k8s.io/x", Operator: corev1.NodeSelectorOpExists},
		}}, "spec.requirements[0].key", "restricted"},
	} {
		claim := &v1.NodeClaim{Spec: tc.spec}
		checkErrors(t, tc.reason, claim.Validate(), tc.wantField, tc.wantText)
	}
}

// checkErrors holds that there is no error if wantField is empty, else at least one, and that the first is about the
// field and contains the text. More than one error about the same field is fine.
func checkErrors(t *testing.T, reason string, errs field.ErrorList, wantField, wantText string) {
	t.Helper()
	if wantField == "" {
		if len(errs) > 0 {
			t.Errorf("%s: %v", reason, errs.ToAggregate())
		}
		return
	}
	for _, err := range errs {
		if err.Field == wantField && strings.Contains(err.Error(), wantText) {
			return
		}
	}
	t.Errorf("%s: errors %v, want one about %s with %q", reason, errs.ToAggregate(), wantField, wantText)
}
