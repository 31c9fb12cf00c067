package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// TestRecordLaunch checks the annotations of a claim whose instance is known. Karpenter deletes the instance profiles under
// the cluster's path that no annotation names (pkg/controllers/nodeclass/garbagecollection), so a missing one would cost
// nodes their credentials once Karpenter takes over.
func TestRecordLaunch(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		profile string
		want    map[string]string
	}{
		"the launch names an instance profile":    {"c_1", map[string]string{"owner": "platform", "karpenter.k8s.aws/instance-profile-name": "c_1"}},
		"a launch recorded by an older build":     {"", map[string]string{"owner": "platform"}},
		"the profile is one that the class names": {"their-profile", map[string]string{"owner": "platform", "karpenter.k8s.aws/instance-profile-name": "their-profile"}},
	} {
		claim := launchedClaim()
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim).WithStatusSubresource(&karpv1.NodeClaim{}).Build()
		acts := New(Config{Cluster: "c", Kube: kube, Mirror: classMirror{}, Cloud: ec2Kind{}, Log: zap.NewNop()})
		instance := workflows.Instance{ID: "i-1", ProviderID: "aws:///us-east-1a/i-1", InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand", Profile: test.profile}
		if _, err := acts.joiner.recordLaunch(t.Context(), claim, instance); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		var got karpv1.NodeClaim
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got.Annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", reason, diff)
		}
		if !got.IsTrue(karpv1.ConditionTypeLaunched) || got.Status.ProviderID != instance.ProviderID {
			t.Errorf("%s: the launch is not recorded: %+v", reason, got.Status)
		}
	}
}
