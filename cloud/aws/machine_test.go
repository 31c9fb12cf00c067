package aws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

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
