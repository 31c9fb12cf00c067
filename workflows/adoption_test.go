package workflows

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestUnlaunchedGroup(t *testing.T) {
	t.Parallel()
	groupClaim := func(name, group, instance string) *karpv1.NodeClaim {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Status: karpv1.NodeClaimStatus{ProviderID: instance}}
		if group != "" {
			claim.Annotations = map[string]string{karpv1.LaunchGroupAnnotationKey: group}
		}
		return claim
	}
	alone := groupClaim("alone", "", "")
	claims := []*karpv1.NodeClaim{groupClaim("b", "g", ""), groupClaim("a", "g", ""), groupClaim("launched", "g", "i-1"), groupClaim("other", "h", ""), alone}
	for _, test := range []struct {
		reason string
		claim  *karpv1.NodeClaim
		want   LaunchGroup
	}{
		{"all claims of the group that have nothing are adopted together", claims[1],
			LaunchGroup{Group: "g", Claims: []ClaimRef{{Name: "a", UID: "uid-a"}, {Name: "b", UID: "uid-b"}}}},
		{"a claim made by hand is a group of its own", alone,
			LaunchGroup{Group: "claim-uid-alone", Claims: []ClaimRef{{Name: "alone", UID: "uid-alone"}}}},
	} {
		if diff := cmp.Diff(test.want, UnlaunchedGroup(test.claim, claims)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}
