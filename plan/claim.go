package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// launchGroup is a number of bins that are launched alike.
type launchGroup struct {
	seller *seller
	zones  uint64
	labels map[string]string
	// common are the machines that hold each of the bins, instead the on-demand machines that would do for spot.
	common, instead bitset
	bins            []*bin
	// chosen says that prices have been looked at: all of common may be launched.
	chosen bool
}

// claims turns bins into claims, alike ones next to each other.
func (m *market) claims(bins []*bin) []Claim {
	var claims []Claim
	for _, s := range m.sellers {
		own := slices.DeleteFunc(slices.Clone(bins), func(b *bin) bool { return m.sellers[m.machines[b.machine].pool] != s })
		for _, g := range m.groups(s, own) {
			claims = append(claims, m.claimsOf(g)...)
		}
	}
	return claims
}

// groups gives every bin its cheapest machine and brings those together that can be launched alike.
func (m *market) groups(s *seller, bins []*bin) []*launchGroup {
	instead := m.insteadOfSpot(s, bins)
	m.leaveDearSpot(s, bins, instead)
	holders := m.holdersOf(s, bins)
	if len(s.minimums) == 0 {
		m.divideSpot(bins, holders)
	}
	byKey := map[string]*launchGroup{}
	var groups []*launchGroup
	for i, b := range bins {
		b.zones &= m.machines[b.machine].where
		b.machine = m.cheapest(holders[i], b.zones, b.machine)
		labels := m.labelsOf(s, b)
		zones := b.zones & m.zonesOf(holders[i])
		key := strings.Join([]string{m.machines[b.machine].typ.Name, capacityTypes[m.machines[b.machine].capacity],
			strings.Join(m.zoneNames(zones), ","), m.reservedBy(b.machine), string(appendMap(nil, labels))}, "\x00")
		if len(s.minimums) > 0 {
			// Only claims with the very same choice can be sure to keep enough of it together.
			key += "\x00" + m.identity(holders[i])
		}
		g := byKey[key]
		if g == nil {
			g = &launchGroup{seller: s, zones: zones, labels: labels, common: holders[i].clone(), instead: slices.Clone(instead[i])}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.common.intersect(holders[i])
		g.instead.intersect(instead[i])
		g.bins = append(g.bins, b)
	}
	return groups
}

// holdersOf finds, for each bin, the machines that hold it. What a pool's limits leave is shared out evenly: machines that
// are larger than the one that was paid for by more than a bin's share are left out, so that no limit is exceeded
// whichever machines the launches come to.
func (m *market) holdersOf(s *seller, bins []*bin) []bitset {
	holders := make([]bitset, len(bins))
	share := make([]int64, len(s.budget))
	for a := range share {
		share[a] = max(0, s.budget[a].left) / int64(max(1, len(bins)))
	}
	far := m.outOfReach(s, share)
	var all bitset
	for i, b := range bins {
		if i == 0 || !sameContent(b, bins[i-1]) {
			all = m.holders(s, b)
		}
		if far {
			holders[i] = all
			continue
		}
		holders[i] = m.modest(s, b, all, share)
	}
	return holders
}

// outOfReach says that no machine of a pool is larger than its share of what the pool's limits leave.
func (m *market) outOfReach(s *seller, share []int64) bool {
	var largest Resources
	for i := s.first; i < s.last && len(share) > 0; i++ {
		largest = largest.Max(m.machines[i].size)
	}
	for a := range share {
		if countOf(s.budget[a].name, largest) > share[a] {
			return false
		}
	}
	return true
}

// modest are those of a bin's holders that use up no more of the pool's limits than was paid for and a share of what is
// left.
func (m *market) modest(s *seller, b *bin, holders bitset, share []int64) bitset {
	set := holders.clone()
	for h := range holders.all {
		for a := range s.budget {
			if countOf(s.budget[a].name, m.machines[h].size) > countOf(s.budget[a].name, b.size)+share[a] {
				set.clear(h)
			}
		}
	}
	return set
}

// labelsOf are the custom labels of a bin's node that stand in no template: the pool's own, and what its pods settled.
func (m *market) labelsOf(s *seller, b *bin) map[string]string {
	labels := maps.Clone(s.required)
	if settled, _ := s.settle(b.custom); len(settled) > 0 {
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, settled)
	}
	return labels
}

func sameContent(a, b *bin) bool {
	return a.machine == b.machine && a.zones == b.zones && slices.Equal(a.least, b.least) && slices.EqualFunc(a.content, b.content, func(x, y portion) bool {
		return x.variant == y.variant && x.count == y.count
	})
}

// holders are the machines of the bin's pool, capacity type and reservation that hold its content in its zones.
// What was planned to stay free gives way where it would leave too little choice for minValues.
func (m *market) holders(s *seller, b *bin) bitset {
	if b.least != nil {
		if set := m.holding(s, b, b.least); len(s.minimums) == 0 || m.enough(s, set) {
			return set
		}
	}
	return m.holding(s, b, b.used)
}

// holding are the holders with room for a need.
func (m *market) holding(s *seller, b *bin, need []int64) bitset {
	own := &m.machines[b.machine]
	set := m.holdingAs(s, b, need, own.capacity, own.reservation)
	set.set(b.machine)
	return set
}

// holdingAs are the machines of a pool with one capacity type and reservation that hold a bin's content, with room for a
// need.
func (m *market) holdingAs(s *seller, b *bin, need []int64, capacity, reservation int) bitset {
	set := newBitset(len(m.machines))
	for i := s.first; i < s.last; i++ {
		mach := &m.machines[i]
		if mach.capacity == capacity && mach.reservation == reservation && mach.zones&b.zones != 0 && b.zones&m.allZones&^mach.where == 0 && fits(need, mach.usable) {
			set.set(i)
		}
	}
	for _, p := range b.content {
		set.intersect(p.variant.machines)
	}
	if needs := m.book.attachedBy(b); len(needs) > 0 {
		for i := range set.all {
			if !m.book.bears(m.machines[i].typ.Name, needs) {
				set.clear(i)
			}
		}
	}
	return set
}

// cheapest is the machine with the lowest price in some zones; among equal ones the first in the market.
func (m *market) cheapest(set bitset, zones uint64, otherwise int) int {
	best, price := otherwise, math.Inf(1)
	for i := range set.all {
		if p := m.priceIn(i, zones); p < price {
			best, price = i, p
		}
	}
	return best
}

func (m *market) zonesOf(set bitset) uint64 {
	var zones uint64
	for i := range set.all {
		zones |= m.machines[i].zones
	}
	return zones
}

func (m *market) identity(set bitset) string {
	var names []string
	for i := range set.all {
		names = append(names, m.machines[i].typ.Name)
	}
	return strings.Join(names, ",")
}

// claimsOf makes a claim of each bin of a group.
func (m *market) claimsOf(g *launchGroup) []Claim {
	chosen, met := m.choose(m.ranked(g, m.ceiling(g)), g.seller.minimums)
	if !met {
		chosen, met = m.choose(m.ranked(g, math.Inf(1)), g.seller.minimums)
	}
	first := &m.machines[chosen[0]]
	template := Claim{
		NodePool:         g.seller.name,
		CapacityType:     capacityTypes[first.capacity],
		Zones:            m.zoneNames(g.zones & m.zonesOf(setOf(chosen, len(m.machines)))),
		Reservation:      m.reservedBy(chosen[0]),
		Labels:           g.labels,
		PricePerHour:     m.priceIn(chosen[0], g.zones),
		MinValuesRelaxed: !met,
	}
	if ref := g.seller.NodePool.Spec.Template.Spec.NodeClassRef; ref != nil {
		template.NodeClass = ref.Name
	}
	for _, i := range chosen {
		template.InstanceTypes = append(template.InstanceTypes, m.machines[i].typ.Name)
	}
	requirements, settled := narrowed(g.seller.NodePool, &template)
	template.Group = template.group()
	daemons := m.dims.vector(ResourcesOf(first.typ.Allocatable))
	take(daemons, first.usable, 1)
	claims := make([]Claim, 0, len(g.bins))
	for _, b := range g.bins {
		claim := template
		requests := slices.Clone(b.used)
		take(requests, daemons, -1)
		claim.Requests = m.dims.resources(requests).List()
		claim.Requirements = m.constrained(requirements, b, settled)
		for _, p := range b.content {
			for _, pod := range p.pods {
				claim.Pods = append(claim.Pods, pod.UID)
			}
		}
		claims = append(claims, claim)
	}
	return claims
}

// ranked are the machines that hold all bins of a group and are not dearer than a ceiling, the cheapest first.
func (m *market) ranked(g *launchGroup, ceiling float64) []int {
	var ranked []int
	for i := range g.common.all {
		if mach := &m.machines[i]; mach.zones&g.zones != 0 && m.priceIn(i, g.zones) <= ceiling {
			ranked = append(ranked, i)
		}
	}
	own := g.bins[0].machine
	if len(ranked) == 0 {
		return []int{own}
	}
	slices.SortStableFunc(ranked, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.priceIn(a, g.zones), m.priceIn(b, g.zones)), cmp.Compare(a, b))
	})
	return ranked
}

// ceiling is the price above which spot makes no sense: that of the cheapest on-demand machine that would do for all of a
// group. It is that of a machine that costs more where nothing else would do.
func (m *market) ceiling(g *launchGroup) float64 {
	if g.chosen {
		return math.Inf(1)
	}
	return m.cheapestPrice(g.instead, g.zones)
}

func setOf(members []int, size int) bitset {
	set := newBitset(size)
	for _, i := range members {
		set.set(i)
	}
	return set
}

// group is a name for all that claims have to share to be launched together.
func (c *Claim) group() string {
	key := []byte(nil)
	for _, part := range []string{c.NodePool, c.NodeClass, c.CapacityType, c.Reservation, strings.Join(c.InstanceTypes, ","), strings.Join(c.Zones, ",")} {
		key = appendString(key, part)
	}
	sum := sha256.Sum256(appendMap(key, c.Labels))
	return hex.EncodeToString(sum[:8])
}

// narrowed are the pool's requirements with instance type, capacity type and zone as the claim leaves them, and custom
// labels as they were settled. Those come first, and settled is how many they are.
func narrowed(pool *karpv1.NodePool, c *Claim) (result []karpv1.NodeSelectorRequirementWithMinValues, settled int) {
	in := func(key string, values []string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: slices.Sorted(slices.Values(values))}
	}
	result = []karpv1.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelInstanceTypeStable, c.InstanceTypes),
		in(karpv1.CapacityTypeLabelKey, []string{c.CapacityType}),
		in(corev1.LabelTopologyZone, c.Zones),
	}
	if c.Reservation != "" {
		result = append(result, in(awsv1.LabelCapacityReservationID, []string{c.Reservation}))
	}
	fixed := len(result)
	position := map[string]int{}
	for i := range result {
		position[result[i].Key] = i
	}
	for key, value := range c.Labels {
		position[key] = -1
		result = append(result, in(key, []string{value}))
	}
	slices.SortFunc(result[fixed:], func(a, b karpv1.NodeSelectorRequirementWithMinValues) int { return cmp.Compare(a.Key, b.Key) })
	settled = len(result)
	for _, r := range pool.Spec.Template.Spec.Requirements {
		i, taken := position[karpv1.NormalizedLabelKey(r.Key)]
		switch {
		case !taken:
			result = append(result, *r.DeepCopy())
		case i >= 0 && r.MinValues != nil && *r.MinValues <= len(result[i].Values):
			result[i].MinValues = r.MinValues
		}
	}
	return result, settled
}

// NodeClaim writes the claim as the object that is created. Everything that is known then is set at once: labels,
// annotations, owner and finalizer, so that nothing has to be added by a second write. The error is that the pool's
// template cannot be hashed.
func (c *Claim) NodeClaim(pool *karpv1.NodePool, name string) (*karpv1.NodeClaim, error) {
	hash, err := pool.Hash()
	if err != nil {
		return nil, err
	}
	template := pool.Spec.Template.DeepCopy()
	labels := map[string]string{}
	maps.Copy(labels, template.Labels)
	maps.Copy(labels, c.Labels)
	labels[karpv1.NodePoolLabelKey] = pool.Name
	if ref := template.Spec.NodeClassRef; ref != nil {
		labels[karpv1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
	}
	annotations := map[string]string{}
	maps.Copy(annotations, template.Annotations)
	annotations[karpv1.NodePoolHashAnnotationKey] = hash
	annotations[karpv1.NodePoolHashVersionAnnotationKey] = karpv1.NodePoolHashVersion
	if c.MinValuesRelaxed {
		annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] = "true"
	}
	yes := true
	return &karpv1.NodeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: karpv1.Group + "/v1", Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      labels,
			Annotations: annotations,
			Finalizers:  []string{karpv1.TerminationFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpv1.Group + "/v1", Kind: "NodePool", Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: karpv1.NodeClaimSpec{
			Taints:                 template.Spec.Taints,
			StartupTaints:          template.Spec.StartupTaints,
			Requirements:           c.Requirements,
			Resources:              karpv1.ResourceRequirements{Requests: c.Requests},
			NodeClassRef:           template.Spec.NodeClassRef,
			TerminationGracePeriod: template.Spec.TerminationGracePeriod,
			ExpireAfter:            template.Spec.ExpireAfter,
		},
	}, nil
}
