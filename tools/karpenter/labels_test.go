package karpenter

import (
	"os"
	"regexp"
	"testing"

	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// TestLabelsAreKarpenters compares the labels in docs/reference with those that Karpenter and its provider for AWS know.
func TestLabelsAreKarpenters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/labels.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = true
	}
	known := map[string]bool{karpv1.NodeRegisteredLabelKey: true, karpv1.NodeInitializedLabelKey: true, v1.LabelNodeClass: true}
	for key := range karpv1.WellKnownLabels {
		known[key] = true
	}
	for key := range karpv1.NormalizedLabels {
		known[key] = true
	}
	// Karpenter's provider adds this one when it starts (pkg/operator).
	known["topology.ebs.csi.aws.com/zone"] = true
	for key := range known {
		if !documented[key] {
			t.Errorf("Karpenter knows %s, which is not documented", key)
		}
	}
	for key := range documented {
		if !known[key] {
			t.Errorf("%s is documented, and Karpenter does not know it", key)
		}
	}
}
