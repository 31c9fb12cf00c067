package aws_test

import (
	"testing"

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
