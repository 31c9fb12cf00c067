package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// Resources that an instance has only on request are requested if any claim of a group does, and appear in the status of
// the claims that did.
func TestDevicesOnRequest(t *testing.T) {
	t.Parallel()
	asking, plain := launchedClaim(), launchedClaim()
	asking.Spec.Resources.Requests = corev1.ResourceList{awsv1.ResourceEFA: resource.MustParse("1"), "cpu": resource.MustParse("2")}
	plain.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2"), awsv1.ResourceNVIDIAGPU: resource.MustParse("0")}
	if diff := cmp.Diff([]corev1.ResourceName{"cpu", awsv1.ResourceEFA}, requested([]*karpv1.NodeClaim{plain, asking})); diff != "" {
		t.Errorf("requests of the group (-want +got):\n%s", diff)
	}
	kind := &cloud.InstanceType{
		Capacity:  corev1.ResourceList{"cpu": resource.MustParse("96"), awsv1.ResourceEFA: resource.MustParse("4")},
		OnRequest: []corev1.ResourceName{awsv1.ResourceEFA},
	}
	for reason, test := range map[string]struct {
		claim *karpv1.NodeClaim
		want  corev1.ResourceList
	}{
		"it asked":   {asking, kind.Capacity},
		"it did not": {plain, corev1.ResourceList{"cpu": resource.MustParse("96")}},
	} {
		if diff := cmp.Diff(test.want, hasGot(test.claim, kind, kind.Capacity)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	if len(kind.Capacity) != 2 {
		t.Errorf("the type itself was changed: %v", kind.Capacity)
	}
}
