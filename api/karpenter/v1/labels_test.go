package v1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestNodeClassLabelKey(t *testing.T) {
	t.Parallel()
	got := v1.NodeClassLabelKey(schema.GroupKind{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass"})
	if want := "karpenter.k8s.aws/ec2nodeclass"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNormalizedLabelKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"topology.ebs.csi.aws.com/zone":            "topology.kubernetes.io/zone",
		"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
		"beta.kubernetes.io/os":                    "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"example.com/team":                         "example.com/team",
	} {
		if got := v1.NormalizedLabelKey(key); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}

// TestLabelsAreLookedUpWithoutGarbage holds that a look at a label makes nothing: every label of every NodeClaim is looked at
// whenever anything changes.
func TestLabelsAreLookedUpWithoutGarbage(t *testing.T) {
	for _, key := range []string{"karpenter.k8s.aws/instance-cpu", "topology.kubernetes.io/zone", "example.com/team"} {
		if made := testing.AllocsPerRun(100, func() { _ = v1.RestrictedLabel(key) }); made > 0 {
			t.Errorf("%s: %.0f allocations", key, made)
		}
	}
}
