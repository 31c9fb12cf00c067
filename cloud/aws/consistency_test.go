package aws_test

import (
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestWhatEC2DoesNotKnowYet resolves a class with a profile, a security group, an image or a launch template that
// launches know only after a lag. Until then, a launch fails with an error that asks for a retry with a new token, and
// the class is not refused. Afterwards, resolving and launching work at once.
func TestWhatEC2DoesNotKnowYet(t *testing.T) {
	t.Parallel()
	lag := ec2sim.Duration(20 * time.Second)
	for kind, faults := range map[string]ec2sim.Faults{
		"profile": {ProfileLag: lag}, "group": {GroupLag: lag}, "image": {ImageLag: lag}, "template": {TemplateLag: lag},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.change(func(f *ec2sim.Faults) { *f = faults })
			if _, err := a.sim.AddImage(ec2sim.Image{Name: "golden", Arch: "x86_64"}); err != nil {
				t.Fatal(err)
			}
			if _, err := a.ec2.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{
				GroupName: awssdk.String("new"), Description: awssdk.String("made a moment ago"),
				TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup, Tags: []types.Tag{{Key: awssdk.String("team"), Value: awssdk.String("blue")}}}},
			}); err != nil {
				t.Fatal(err)
			}
			class := a.NodeClass()
			family := awsv1.AMIFamilyAL2023
			class.Spec.AMIFamily, class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{Name: "golden"}}
			class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{"team": "blue"}}}
			a.resolve(a.provider, class)
			for _, c := range class.Status.Conditions {
				if c.Status == metav1.ConditionFalse && c.Type != "Ready" {
					t.Errorf("the class is refused: %s: %s: %s", c.Type, c.Reason, c.Message)
				}
			}
			launch := func(token string) error {
				request := a.prepare(a.provider, class, token, large("on-demand", "us-east-1a"))
				_, err := a.provider.Launch(t.Context(), request)
				return err
			}
			err := launch("early")
			if k := cloud.KindOf(err); k != cloud.StaleRequest && k != cloud.Transient || !cloud.Answered(err) || cloud.Unsure(err) {
				t.Errorf("a launch that comes too early: kind %s, answered %v: %v", k, cloud.Answered(err), err)
			}
			a.Advance(time.Duration(lag))
			a.resolve(a.provider, class)
			if kind != "template" && !class.IsTrue("Ready") { // each validation has a new template, which lags again
				t.Errorf("the class is not ready when the lag has passed: %+v", class.Status.Conditions)
			}
			if err := launch("later"); err != nil {
				t.Errorf("a launch when the lag has passed: %v", err)
			}
			offered, err := a.provider.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range offered {
				for _, o := range it.Offerings {
					if it.Name == "m5.large" && o.Zone == "us-east-1a" && o.CapacityType == "on-demand" && !o.Available {
						t.Error("the offering is held to be unavailable")
					}
				}
			}
		})
	}
}
