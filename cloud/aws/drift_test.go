package aws_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// launched launches an instance and returns it, as EC2 describes it afterwards, with a claim for it.
func (a *account) launched(class *awsv1.EC2NodeClass, spec cloud.LaunchSpec) cloud.DriftQuestion {
	a.t.Helper()
	request, err := a.provider.PrepareLaunch(a.t.Context(), spec)
	if err != nil {
		a.t.Fatal(err)
	}
	request.Token = "token-" + spec.Group
	result, err := a.provider.Launch(a.t.Context(), request)
	if err != nil {
		a.t.Fatal(err)
	}
	found, err := a.provider.Instances(a.t.Context(), cloud.Query{IDs: []string{result.Instances[0].ID}})
	if err != nil || len(found) != 1 {
		a.t.Fatalf("%d instances: %v", len(found), err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: spec.Group,
		Labels: map[string]string{corev1.LabelInstanceTypeStable: found[0].InstanceType},
		Annotations: map[string]string{
			awsv1.AnnotationEC2NodeClassHash:        class.Annotations[awsv1.AnnotationEC2NodeClassHash],
			awsv1.AnnotationEC2NodeClassHashVersion: class.Annotations[awsv1.AnnotationEC2NodeClassHashVersion],
		}}}
	return cloud.DriftQuestion{Claim: claim, Instance: found[0]}
}

// TestDrift compares a running instance with its class after changes.
func TestDrift(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	reservation := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 4, Targeted: true})
	class := a.resolvedClass(awsv1.CapacityReservationSelectorTerm{ID: reservation})
	class.Annotations = map[string]string{awsv1.AnnotationEC2NodeClassHash: "1", awsv1.AnnotationEC2NodeClassHashVersion: "v5"}
	onDemand := a.launched(class, a.spec(class, "on-demand", 1))
	reservedSpec := a.spec(class, "reserved", 1)
	reservedSpec.CapacityType = "reserved"
	reservedSpec.Offerings = []cloud.OfferingKey{{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "reserved", ReservationID: reservation}}
	reserved := a.launched(class, reservedSpec)
	unknown := cloud.DriftQuestion{Claim: onDemand.Claim.DeepCopy()}
	unknown.Claim.Status.ImageID = onDemand.Instance.Image
	foreign := awsv1.AMI{ID: "ami-0other", Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpExists}}}
	for _, row := range []struct {
		why    string
		node   cloud.DriftQuestion
		change func(*awsv1.EC2NodeClass)
		reason string
		// says is what the message has to name.
		says string
	}{
		{why: "a node is what its class has just launched", node: onDemand, change: func(*awsv1.EC2NodeClass) {}, reason: "", says: ""},
		{why: "a reserved one too", node: reserved, change: func(*awsv1.EC2NodeClass) {}, reason: "", says: ""},
		{why: "a static field changed", node: onDemand,
			change: func(c *awsv1.EC2NodeClass) { c.Annotations[awsv1.AnnotationEC2NodeClassHash] = "2" }, reason: "NodeClassDrift", says: "hash 1, now 2"},
		{why: "hashes of two versions are not compared", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			c.Annotations = map[string]string{awsv1.AnnotationEC2NodeClassHash: "2", awsv1.AnnotationEC2NodeClassHashVersion: "v6"}
		}, reason: "", says: ""},
		{why: "a class without a hash says nothing", node: onDemand, change: func(c *awsv1.EC2NodeClass) { c.Annotations = nil }, reason: "", says: ""},
		{why: "a newer image runs on the same machines", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			c.Status.AMIs = slices.Insert(slices.Clone(c.Status.AMIs), 0, foreign)
		}, reason: "AMIDrift", says: onDemand.Instance.Image},
		{why: "an image for other machines is none of its business", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			gpu := foreign
			gpu.Requirements = []corev1.NodeSelectorRequirement{{Key: "karpenter.k8s.aws/instance-gpu-count", Operator: corev1.NodeSelectorOpExists}}
			c.Status.AMIs = slices.Insert(slices.Clone(c.Status.AMIs), 0, gpu)
		}, reason: "", says: ""},
		{why: "no image for its machine is left", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			gpu := foreign
			gpu.Requirements = []corev1.NodeSelectorRequirement{{Key: "karpenter.k8s.aws/instance-gpu-count", Operator: corev1.NodeSelectorOpExists}}
			c.Status.AMIs = []awsv1.AMI{gpu}
		}, reason: "AMIDrift", says: "ami-0other"},
		{why: "images that are not known at the moment say nothing", node: onDemand,
			change: func(c *awsv1.EC2NodeClass) { c.Status.AMIs = nil }, reason: "", says: ""},
		{why: "a security group more", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			c.Status.SecurityGroups = append(slices.Clone(c.Status.SecurityGroups), awsv1.SecurityGroup{ID: "sg-more"})
		}, reason: "SecurityGroupDrift", says: "sg-more"},
		{why: "the same security groups in another order", node: onDemand,
			change: func(c *awsv1.EC2NodeClass) { slices.Reverse(c.Status.SecurityGroups) }, reason: "", says: ""},
		{why: "security groups that are not known at the moment say nothing", node: onDemand,
			change: func(c *awsv1.EC2NodeClass) { c.Status.SecurityGroups = nil }, reason: "", says: ""},
		{why: "its subnet is not selected any more", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			c.Status.Subnets = slices.DeleteFunc(slices.Clone(c.Status.Subnets), func(s awsv1.Subnet) bool { return s.ID == onDemand.Instance.Subnet })
		}, reason: "SubnetDrift", says: onDemand.Instance.Subnet},
		{why: "subnets that are not known at the moment say nothing", node: onDemand,
			change: func(c *awsv1.EC2NodeClass) { c.Status.Subnets = nil }, reason: "", says: ""},
		{why: "its reservation is not selected any more", node: reserved,
			change: func(c *awsv1.EC2NodeClass) { c.Status.CapacityReservations = nil }, reason: "CapacityReservationDrift", says: reservation},
		{why: "an on-demand node has no reservation to miss", node: onDemand,
			change: func(c *awsv1.EC2NodeClass) { c.Status.CapacityReservations = nil }, reason: "", says: ""},
		{why: "of an instance that is not known yet, the claim knows the class", node: unknown,
			change: func(c *awsv1.EC2NodeClass) { c.Annotations[awsv1.AnnotationEC2NodeClassHash] = "2" }, reason: "NodeClassDrift", says: ""},
		{why: "and the image", node: unknown, change: func(c *awsv1.EC2NodeClass) {
			c.Status.AMIs = slices.Insert(slices.Clone(c.Status.AMIs), 0, foreign)
		}, reason: "AMIDrift", says: onDemand.Instance.Image},
		{why: "and nothing else", node: unknown, change: func(c *awsv1.EC2NodeClass) {
			c.Status.SecurityGroups, c.Status.Subnets = []awsv1.SecurityGroup{{ID: "sg-other"}}, []awsv1.Subnet{{ID: "subnet-other", Zone: "us-east-1a"}}
		}, reason: "", says: ""},
		{why: "of several reasons the first one counts", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			c.Annotations[awsv1.AnnotationEC2NodeClassHash] = "2"
			c.Status.AMIs, c.Status.SecurityGroups = []awsv1.AMI{foreign}, []awsv1.SecurityGroup{{ID: "sg-other"}}
		}, reason: "NodeClassDrift", says: ""},
		{why: "the image before the security groups", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			c.Status.AMIs, c.Status.SecurityGroups = []awsv1.AMI{foreign}, []awsv1.SecurityGroup{{ID: "sg-other"}}
		}, reason: "AMIDrift", says: ""},
		{why: "the security groups before the subnet", node: onDemand, change: func(c *awsv1.EC2NodeClass) {
			c.Status.SecurityGroups, c.Status.Subnets = []awsv1.SecurityGroup{{ID: "sg-other"}}, []awsv1.Subnet{{ID: "subnet-other", Zone: "us-east-1a"}}
		}, reason: "SecurityGroupDrift", says: ""},
	} {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			changed := class.DeepCopy()
			row.change(changed)
			drifts, err := a.newProvider().Drift(t.Context(), changed, []cloud.DriftQuestion{row.node})
			if err != nil || len(drifts) != 1 {
				t.Fatalf("%d answers: %v", len(drifts), err)
			}
			if drifts[0].Reason != row.reason || !strings.Contains(drifts[0].Message, row.says) {
				t.Errorf("drift is %+v, want %s naming %q", drifts[0], row.reason, row.says)
			}
		})
	}
}
