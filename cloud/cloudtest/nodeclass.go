package cloudtest

import (
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func (s *suite) nodeClassResolves() {
	class := s.harness.NodeClass()
	before := class.DeepCopy()
	status, err := s.cloud.ResolveNodeClass(s.ctx(), class)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(before, class); diff != "" {
		s.Errorf("ResolveNodeClass changed its argument:\n%s", diff)
	}
	for _, part := range append(class.ReadyParts(), "Ready") {
		if !meta.IsStatusConditionTrue(status.Conditions, part) {
			s.Errorf("condition %s is not True: %+v", part, meta.FindStatusCondition(status.Conditions, part))
		}
	}
	if len(status.AMIs) == 0 || len(status.Subnets) == 0 || len(status.SecurityGroups) == 0 || status.InstanceProfile == "" {
		s.Errorf("the status is not complete: %+v", status)
	}
	class.Status = status
	again, err := s.cloud.ResolveNodeClass(s.ctx(), class)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(status, again); diff != "" {
		s.Errorf("resolving again came to something else:\n%s", diff)
	}
}

func (s *suite) nodeClassWithoutMatches() {
	nothing := map[string]string{"tenon.sh/no-such-tag": "at-all"}
	for condition, spoil := range map[string]func(*awsv1.EC2NodeClass){
		awsv1.ConditionTypeSubnetsReady: func(c *awsv1.EC2NodeClass) {
			c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: nothing}}
		},
		awsv1.ConditionTypeSecurityGroupsReady: func(c *awsv1.EC2NodeClass) {
			c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: nothing}}
		},
		awsv1.ConditionTypeAMIsReady: func(c *awsv1.EC2NodeClass) {
			family := awsv1.AMIFamilyCustom
			c.Spec.AMIFamily, c.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{Tags: nothing}}
		},
	} {
		class := s.harness.NodeClass()
		spoil(class)
		status, err := s.cloud.ResolveNodeClass(s.ctx(), class)
		if err != nil {
			s.Errorf("%s: a selector without matches is a condition, not an error: %v", condition, err)
			continue
		}
		for _, name := range []string{condition, "Ready"} {
			found := meta.FindStatusCondition(status.Conditions, name)
			if found == nil || found.Status != metav1.ConditionFalse || found.Reason == "" || found.Message == "" {
				s.Errorf("%s: condition %s is %+v, want False with a reason", condition, name, found)
			}
		}
	}
}

func (s *suite) releaseIsIdempotent() {
	class := s.class()
	s.prepare(s.spec(class, 1, "on-demand"))
	for range 2 {
		if err := s.cloud.ReleaseNodeClass(s.ctx(), class); err != nil {
			s.Fatalf("ReleaseNodeClass: %v", err)
		}
	}
	// The class can be resolved again and used for launches.
	s.resolve(class)
	s.launch(s.prepare(s.spec(class, 1, "on-demand")))
}

func (s *suite) instanceTypesNeedAResolvedClass() {
	_, err := s.cloud.InstanceTypes(s.ctx(), s.harness.NodeClass())
	s.wantKind(err, cloud.NodeClassNotReady)
}
