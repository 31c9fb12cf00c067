package karpenter

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// labelsFile has the labels that Karpenter gives nodes of the recorded instance types.
const labelsFile = "../../cloud/aws/testdata/families/labels.json"

// TestLabelsOfTypesAreRecorded compares the record with the labels that follow from an instance type alone: those that have
// one value, whatever is launched.
func TestLabelsOfTypesAreRecorded(t *testing.T) {
	t.Parallel()
	ctx := options.ToContext(t.Context(), &options.Options{ClusterName: "blue", VMMemoryOverheadPercent: vmOverhead})
	got := map[string]map[string]string{}
	for _, info := range machines(t) {
		it := instancetype.NewInstanceType(ctx, info, region, []string{"us-east-1a", "us-east-1b"},
			[]v1.ZoneInfo{{Zone: "us-east-1a", ZoneID: "use1-az1"}, {Zone: "us-east-1b", ZoneID: "use1-az2"}}, nil, nil, nil, nil, nil, nil, nil, nil, nil, v1.AMIFamilyAL2023, nil)
		labels := map[string]string{}
		for key := range karpv1.WellKnownLabels {
			if r := it.Requirements.Get(key); it.Requirements.Has(key) && r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
				labels[key] = r.Any()
			}
		}
		got[it.Name] = labels
	}
	made, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, '\n')
	if *update {
		if err := os.WriteFile(labelsFile, made, 0o644); err != nil { // part of the repository
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(labelsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, made) {
		t.Errorf("%s is not what Karpenter answers: go test -C tools/karpenter -update", labelsFile)
	}
}

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
