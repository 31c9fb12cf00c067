package aws

import (
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// TestAcceleratorLabels: EC2 describes Neuron devices as such, and other accelerators, such as those of dl2q, as inference
// accelerators; it describes Inferentia as both (Karpenter, pkg/providers/instancetype/types.go).
func TestAcceleratorLabels(t *testing.T) {
	t.Parallel()
	inference := func(manufacturer, name string, count int32) *types.InferenceAcceleratorInfo {
		return &types.InferenceAcceleratorInfo{Accelerators: []types.InferenceDeviceInfo{{Count: &count, Manufacturer: &manufacturer, Name: &name}}}
	}
	labels := func(manufacturer, name, count string) map[string]string {
		return map[string]string{
			awsv1.LabelInstanceAcceleratorManufacturer: manufacturer, awsv1.LabelInstanceAcceleratorName: name, awsv1.LabelInstanceAcceleratorCount: count,
		}
	}
	neuron := &types.NeuronInfo{NeuronDevices: []types.NeuronDeviceInfo{{Count: aws.Int32(1), Name: aws.String("Inferentia")}}}
	for reason, test := range map[string]struct {
		info types.InstanceTypeInfo
		want map[string]string
	}{
		"a Neuron device":                         {types.InstanceTypeInfo{NeuronInfo: neuron}, labels("aws", "inferentia", "1")},
		"another accelerator":                     {types.InstanceTypeInfo{InferenceAcceleratorInfo: inference("Qualcomm", "Cloud AI100", 8)}, labels("qualcomm", "cloud-ai100", "8")},
		"a device that is described in both ways": {types.InstanceTypeInfo{NeuronInfo: neuron, InferenceAcceleratorInfo: inference("AWS", "Inferentia", 4)}, labels("aws", "inferentia", "1")},
		"none": {types.InstanceTypeInfo{}, map[string]string{}},
	} {
		got := map[string]string{}
		acceleratorLabels(&test.info, got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// TestLabelsOfTypes compares the labels of instance types with those that Karpenter gives them, which tools/karpenter records.
func TestLabelsOfTypes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/families/labels.json")
	if err != nil {
		t.Fatal(err)
	}
	var karpenters map[string]map[string]string
	if err := json.Unmarshal(text, &karpenters); err != nil {
		t.Fatal(err)
	}
	_, record := readFamilies(t)
	for _, info := range record.Machines {
		name := string(info.InstanceType)
		got := maps.Clone(machineOf(t, &record, name).labels)
		got[corev1.LabelTopologyRegion] = "us-east-1" // discoverMachines adds it
		if diff := cmp.Diff(karpenters[name], got); diff != "" {
			t.Errorf("%s (-Karpenter +Tenon):\n%s", name, diff)
		}
	}
	if len(karpenters) != len(record.Machines) {
		t.Errorf("%d types are recorded with labels, %d with descriptions", len(karpenters), len(record.Machines))
	}
}
