package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// nodes joins Nodes, their NodeClaims and what runs on them.
func (b *builder) nodes() {
	claims := map[string]*plan.Node{} // by provider id
	var alone []*plan.Node
	for _, o := range only[*karpv1.NodeClaim](b.objects) {
		for _, err := range o.value.Validate() {
			b.wrong = append(b.wrong, &mistake{place: o.place, field: err.Field, problem: err.ErrorBody()})
		}
		if o.value.UID == "" {
			o.value.UID = types.UID("NodeClaim/" + o.place.name)
		}
		claim := b.interner.Claim(o.value)
		if claim.ProviderID == "" || claims[claim.ProviderID] != nil {
			alone = append(alone, claim)
			continue
		}
		claims[claim.ProviderID] = claim
	}
	limits := map[string]map[string]int{}
	for _, o := range only[*storagev1.CSINode](b.objects) {
		limits[o.place.name] = b.interner.AttachLimits(o.value)
	}
	for _, o := range only[*corev1.Node](b.objects) {
		if wrong := completeNode(o.place, o.value); wrong != nil {
			b.wrong = append(b.wrong, wrong)
			continue
		}
		node := b.interner.Node(o.value)
		if claim := claims[node.ProviderID]; claim != nil && node.ProviderID != "" {
			delete(claims, node.ProviderID)
			node = claim.Join(node)
		}
		pods := b.bound[o.place.name]
		slices.SortFunc(pods, byUID)
		node.AttachLimits = limits[o.place.name]
		b.snapshot.Nodes = append(b.snapshot.Nodes, node.WithPods(pods))
	}
	for _, claim := range claims {
		alone = append(alone, claim)
	}
	b.snapshot.Nodes = append(b.snapshot.Nodes, alone...)
	slices.SortFunc(b.snapshot.Nodes, func(x, y *plan.Node) int { return strings.Compare(x.Key(), y.Key()) })
}
