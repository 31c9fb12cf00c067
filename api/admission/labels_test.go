package admission

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestWellKnownLabelsAreOneList holds that the rules in the definitions, karpv1.AWSWellKnownLabels and the constants of
// package aws/v1 name the same keys.
func TestWellKnownLabelsAreOneList(t *testing.T) {
	t.Parallel()
	constants := sets.New(
		awsv1.LabelNodeClass, awsv1.LabelInstanceCategory, awsv1.LabelInstanceFamily, awsv1.LabelInstanceGeneration,
		awsv1.LabelInstanceSize, awsv1.LabelInstanceCapabilityFlex, awsv1.LabelInstanceHypervisor,
		awsv1.LabelInstanceEncryptionInTransitSupported, awsv1.LabelInstanceCPU, awsv1.LabelInstanceCPUManufacturer,
		awsv1.LabelInstanceCPUSustainedClockSpeedMhz, awsv1.LabelInstanceMemory, awsv1.LabelInstanceEBSBandwidth,
		awsv1.LabelInstanceNetworkBandwidth, awsv1.LabelInstanceGPUName, awsv1.LabelInstanceGPUManufacturer,
		awsv1.LabelInstanceGPUCount, awsv1.LabelInstanceGPUMemory, awsv1.LabelInstanceAcceleratorName,
		awsv1.LabelInstanceAcceleratorManufacturer, awsv1.LabelInstanceAcceleratorCount, awsv1.LabelInstanceLocalNVME,
		awsv1.LabelInstanceTenancy, awsv1.LabelCapacityReservationID,
		awsv1.LabelCapacityReservationType, awsv1.LabelCapacityReservationInterruptible, awsv1.LabelPlacementGroupID,
		awsv1.LabelPlacementGroupPartition,
	)
	if diff := cmp.Diff(sets.List(constants), sets.List(karpv1.AWSWellKnownLabels())); diff != "" {
		t.Errorf("constants and AWSWellKnownLabels differ (-constants +list)\n%s", diff)
	}
	if !karpv1.WellKnownLabels().Has(awsv1.LabelTopologyZoneID) {
		t.Errorf("%s is not a well-known label", awsv1.LabelTopologyZoneID)
	}

	key := regexp.MustCompile(`karpenter\.k8s\.aws/[a-z0-9-]+`)
	all := judges(t)
	template := all["NodePool"].structural.Properties["spec"].Properties["template"]
	for place, rules := range map[string]*schema.Structural{
		"NodePool labels":       new(template.Properties["metadata"].Properties["labels"]),
		"NodePool requirements": new(template.Properties["spec"].Properties["requirements"].Items.Properties["key"]),
		"NodeClaim requirements": new(all["NodeClaim"].structural.Properties["spec"].Properties["requirements"].
			Items.Properties["key"]),
		"NodeOverlay requirements": new(all["NodeOverlay"].structural.Properties["spec"].Properties["requirements"].
			Items.Properties["key"]),
	} {
		found := sets.New[string]()
		for _, rule := range rules.XValidations {
			found.Insert(key.FindAllString(rule.Rule, -1)...)
		}
		if diff := cmp.Diff(sets.List(constants), sets.List(found)); diff != "" {
			t.Errorf("%s: constants and CEL rule differ (-constants +rule)\n%s", place, diff)
		}
	}
}
