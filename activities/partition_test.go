package activities

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// TestPartitionsOfClaims launches claims into partition placement groups and others, and checks the labels that they have before
// their nodes take pods.
func TestPartitionsOfClaims(t *testing.T) {
	t.Parallel()
	sim, provider, class := matrixCloud(t)
	admin := ec2.New(ec2.Options{Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("admin", "secret", "")})
	for reason, test := range map[string]struct {
		strategy types.PlacementStrategy
		// asks is the partition that the claim requires.
		asks string
		want string
	}{
		"EC2 chooses":             {strategy: types.PlacementStrategyPartition, want: "1"},
		"the claim asks for one":  {strategy: types.PlacementStrategyPartition, asks: "2", want: "2"},
		"a group without them":    {strategy: types.PlacementStrategySpread},
		"a cluster group has one": {strategy: types.PlacementStrategyCluster},
	} {
		made, err := admin.CreatePlacementGroup(t.Context(), &ec2.CreatePlacementGroupInput{GroupName: aws.String(reason), Strategy: test.strategy})
		if err != nil {
			t.Fatal(err)
		}
		placed := class.DeepCopy()
		placed.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{ID: made.PlacementGroup.GroupId}
		resolved, err := provider.ResolveNodeClass(t.Context(), placed)
		if err != nil {
			t.Fatal(err)
		}
		claim := matrixClaims()[0]
		claim.CreationTimestamp = metav1.Now()
		if test.asks != "" {
			claim.Spec.Requirements = append(claim.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
				Key: awsv1.LabelPlacementGroupPartition, Operator: corev1.NodeSelectorOpIn, Values: []string{test.asks}})
		}
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim).WithStatusSubresource(&karpv1.NodeClaim{}).Build()
		acts := New(Config{Cluster: "c", Kube: kube, Mirror: launchMirror{classMirror{class: resolved.(*awsv1.EC2NodeClass)}}, Cloud: provider, Temporal: noWorkflows{}, Log: zap.NewNop()})
		prepared, err := run(t, acts.PrepareLaunch, workflows.LaunchGroup{Group: "g", Claims: []workflows.ClaimRef{{Name: claim.Name, UID: string(claim.UID)}}})
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		prepared.Request.Token = reason
		launched, err := provider.Launch(t.Context(), prepared.Request)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		instance := reduceInstance(launched.Instances[0])
		recorded, err := acts.joiner.recordLaunch(t.Context(), claim, instance)
		if err != nil {
			t.Fatal(err)
		}
		if got := recorded.Labels[awsv1.LabelPlacementGroupPartition]; got != test.asks {
			t.Errorf("%s: the launch is recorded with the partition %q", reason, got)
		}
		if _, err := acts.joiner.labelPartition(t.Context(), recorded, instance); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		var got karpv1.NodeClaim
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), &got); err != nil {
			t.Fatal(err)
		}
		partition, labelled := got.Labels[awsv1.LabelPlacementGroupPartition]
		if partition != test.want || labelled != (test.want != "") || got.Labels[awsv1.LabelPlacementGroupID] != *made.PlacementGroup.GroupId {
			t.Errorf("%s: labels %v, want the group %s and the partition %q", reason, got.Labels, *made.PlacementGroup.GroupId, test.want)
		}
	}
}

// TestAPartitionThatIsNotKnownYet checks that a node waits for the label as long as EC2 may still not know the instance.
func TestAPartitionThatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	sim, provider, class := matrixCloud(t)
	admin := ec2.New(ec2.Options{Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("admin", "secret", "")})
	made, err := admin.CreatePlacementGroup(t.Context(), &ec2.CreatePlacementGroupInput{GroupName: aws.String("parts"), Strategy: types.PlacementStrategyPartition})
	if err != nil {
		t.Fatal(err)
	}
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: aws.String("parts")}
	for reason, test := range map[string]struct {
		age   time.Duration
		fails bool
	}{
		"the launch was just now":       {fails: true},
		"the instance must be gone now": {age: time.Hour},
	} {
		claim := matrixClaims()[0]
		claim.CreationTimestamp = metav1.NewTime(time.Now().Add(-test.age))
		claim.Labels = map[string]string{awsv1.LabelPlacementGroupID: *made.PlacementGroup.GroupId}
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim).Build()
		acts := New(Config{Cluster: "c", Kube: kube, Mirror: launchMirror{classMirror{class: class}}, Cloud: provider, Log: zap.NewNop()})
		_, err := acts.joiner.labelPartition(t.Context(), claim, reduceInstance(cloud.Instance{ID: "i-0123456789abcdef0", InstanceType: "m5.large"}))
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
