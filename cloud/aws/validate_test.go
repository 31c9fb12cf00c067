package aws_test

import (
	"slices"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestWhatEC2DoesNotFindYetIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ action, code string }{
		{"RunInstances", "InvalidAMIID.NotFound"},
		{"RunInstances", "InvalidGroup.NotFound"},
		{"RunInstances", "InvalidSubnetID.NotFound"},
		{"RunInstances", "InvalidLaunchTemplateName.NotFoundException"},
	} {
		t.Run(tc.action+" "+tc.code, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.change(func(f *ec2sim.Faults) { f.Errors = []ec2sim.ErrorFault{{Action: tc.action, Code: tc.code}} })
			class := a.NodeClass()
			a.resolve(a.provider, class)
			found := meta.FindStatusCondition(class.Status.Conditions, awsv1.ConditionTypeValidationSucceeded)
			if found == nil || found.Status != metav1.ConditionUnknown || found.Message == "" {
				t.Errorf("while EC2 does not know, the condition is %+v; want Unknown", found)
			}
			a.change(func(f *ec2sim.Faults) { f.Errors = nil })
			a.resolve(a.provider, class)
			if !class.IsTrue("Ready") {
				t.Error("EC2 knows now, and the class is not ready")
			}
		})
	}
}

// The dry run names every interface of the class as a launch does, so that EC2 refuses it for the same reasons.
func TestTheDryRunHasAllInterfaces(t *testing.T) {
	t.Parallel()
	a := startAccount(t, ec2sim.Options{})
	a.sim.KeepParameters("RunInstances")
	class := a.NodeClass()
	class.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{
		{NetworkCardIndex: 0, DeviceIndex: 0, InterfaceType: awsv1.InterfaceTypeInterface},
		{NetworkCardIndex: 1, DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly},
	}
	a.resolve(a.provider, class)
	if !class.IsTrue("Ready") {
		t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
	}
	var named []string
	sent := a.sim.Calls("RunInstances")[0].Parameters
	for _, nth := range []string{"1", "2", "3"} {
		if card := sent["NetworkInterface."+nth+".NetworkCardIndex"]; card != "" {
			named = append(named, card+" "+sent["NetworkInterface."+nth+".InterfaceType"])
		}
	}
	if want := []string{"0 interface", "1 efa-only"}; !slices.Equal(named, want) {
		t.Errorf("the dry run names the interfaces %q, want %q", named, want)
	}

	public := a.NodeClass()
	public.Name, public.UID = "public", "uid-public"
	public.Spec.NetworkInterfaces, public.Spec.AssociatePublicIPAddress = class.Spec.NetworkInterfaces, awssdk.Bool(true)
	a.resolve(a.provider, public)
	if found := public.Condition(awsv1.ConditionTypeValidationSucceeded); found == nil || found.Status != metav1.ConditionFalse || !strings.Contains(found.Message, "multiple network interfaces") {
		t.Errorf("EC2 refuses a public address beside several interfaces, and the condition is %+v", found)
	}
}
