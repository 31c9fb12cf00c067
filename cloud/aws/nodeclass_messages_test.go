package aws_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestSelectorsThatMatchNothing(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	nothing := map[string]string{"karpenter.sh/discovery": "nobody"}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Tags: nothing}}
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: nothing}}
	class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: nothing}}
	a.resolve(a.provider, class)
	for _, want := range []struct{ condition, reason, message string }{
		{condition: awsv1.ConditionTypeAMIsReady, reason: "AMINotFound", message: "AMISelector did not match any AMIs"},
		{condition: awsv1.ConditionTypeSubnetsReady, reason: "SubnetsNotFound", message: "SubnetSelector did not match any Subnets"},
		{condition: awsv1.ConditionTypeSecurityGroupsReady, reason: "SecurityGroupsNotFound", message: "SecurityGroupSelector did not match any SecurityGroups"},
	} {
		got := meta.FindStatusCondition(class.Status.Conditions, want.condition)
		if got == nil || got.Reason != want.reason || got.Message != want.message {
			t.Errorf("condition %s is %+v; want Karpenter's words, %s: %s", want.condition, got, want.reason, want.message)
		}
	}
}
