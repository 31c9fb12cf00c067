package market

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

const (
	// excludedNamed is how many excluded types a reason names, and excludedReasons how many of the class's reasons it gives.
	excludedNamed   = 2
	excludedReasons = 2
)

// Excluding continues a sentence that says that the pool has no machine with some labels: it says which types would have
// them, and why the node class excludes those. With a device, it says this of the types that would have the device. It is
// empty if the class excludes nothing of the kind.
func (s *Seller) Excluding(m *Market, t model.Term, device string) string {
	names := map[string][]string{}
	for i := range s.Excluded {
		e := &s.Excluded[i]
		typ := cloud.InstanceType{Name: e.InstanceType, Labels: e.Labels}
		if e.Resource == corev1.ResourceName(device) && admitsType(m.Keys, s.ofType, &typ, s.Labels) && admitsType(m.Keys, t, &typ, s.Labels) {
			names[e.Why] = append(names[e.Why], e.InstanceType)
		}
	}
	if len(names) == 0 {
		return ""
	}
	whys := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(names[b]), len(names[a])), strings.Compare(a, b))
	})
	var said []string
	for _, why := range whys[:min(excludedReasons, len(whys))] {
		some := names[why]
		said = append(said, fmt.Sprintf("types such as %s %s", model.List(some[:min(excludedNamed, len(some))], "and"), why))
	}
	class := ""
	if ref := s.NodePool.Spec.Template.Spec.NodeClassRef; ref != nil {
		class = fmt.Sprintf(" (%s %s)", ref.Kind, ref.Name)
	}
	return ": " + strings.Join(said, "; ") + class
}

// OfType reports whether a label of the pool's nodes follows from their instance type.
func (s *Seller) OfType(m *Market, key string) bool {
	offering := m.Zonal(key) || m.Keys.OfReservation(key) || key == karpv1.CapacityTypeLabelKey
	return m.WellKnown.Has(key) && !offering && key != karpv1.NodePoolLabelKey && s.Open[key] == nil
}
