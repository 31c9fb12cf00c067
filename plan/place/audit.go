package place

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// What was decided about domains was decided before anything was bought. A limit may have kept some of it from being
// bought, and nodes for other pods may have made a domain that nobody reckoned with. So the end of a plan is an audit: it
// plays the binding of all planned pods, and those that the kube-scheduler could not bind are given back.

// site is a node of the plan: one that exists, or a planned node.
type site struct {
	slot *ExistingNode
	bin  *PlannedNode
	// like is a Node that shows what is known of a planned node's labels and taints, others show the planned node as the
	// further kinds of machine it may become.
	like   *model.Node
	others []*model.Node
	name   string
	// zones are where a planned node may come to be, while that is open.
	zones uint64
}

// unit is the pods of one pod group that are planned for one site.
type unit struct {
	it   *PodGroup
	site *site
	pods []*model.Pod
	// bound is how many of them are bound.
	bound int
}

// auditor plays the binding of a plan's pods.
type auditor struct {
	d     *Distribution
	sites []*site
	units []*unit
}

// audit gives back what could not be bound, and returns the planned nodes that still have a purpose.
func audit(d *Distribution, snapshot *model.Snapshot, planned []*PlannedNode) []*PlannedNode {
	if !slices.ContainsFunc(d.PodGroups, func(it *PodGroup) bool { return !it.Required.Empty() }) {
		return planned
	}
	a := &auditor{d: d}
	a.gather(planned)
	// Where a machine comes into a zone in which no other is, it may make a domain of its own.
	a.play(snapshot, true)
	if a.stuck() {
		a.fence()
		a.play(snapshot, false)
	}
	if !a.stuck() {
		return planned
	}
	return a.settle(planned)
}

// gather finds out which pods are planned where.
func (a *auditor) gather(planned []*PlannedNode) {
	units := map[*site]map[*PodGroup]*unit{}
	add := func(s *site, pod *model.Pod) {
		it := a.d.Home[pod]
		if units[s] == nil {
			units[s] = map[*PodGroup]*unit{}
			a.sites = append(a.sites, s)
		}
		u := units[s][it]
		if u == nil {
			u = &unit{it: it, site: s}
			units[s][it] = u
			a.units = append(a.units, u)
		}
		u.pods = append(u.pods, pod)
	}
	byKey := map[string]*site{}
	for _, s := range a.d.Existing {
		byKey[s.Node.Key()] = &site{slot: s, like: s.Node, name: s.Node.Key()}
	}
	for i := range a.d.Placements {
		if s := byKey[a.d.Placements[i].Node]; s != nil {
			add(s, a.d.Placements[i].Pod)
		}
	}
	for i, b := range planned {
		s := siteOf(a.d, b, i)
		for j := range b.content {
			for _, pod := range b.content[j].pods {
				add(s, pod)
			}
		}
	}
	// In this order every pod had a domain when it was decided about.
	slices.SortStableFunc(a.units, func(x, y *unit) int { return cmp.Compare(x.it.Turn, y.it.Turn) })
}

// siteOf is the node a planned node becomes, as far as that is settled.
func siteOf(d *Distribution, b *PlannedNode, i int) *site {
	mach := &d.Market.Machines[b.Machine]
	s := d.Market.Sellers[mach.Pool]
	labels := map[string]string{}
	maps.Copy(labels, mach.Typ.Labels)
	maps.Copy(labels, s.Labels)
	maps.Copy(labels, labelsOf(d.Market, s, b))
	labels[karpv1.CapacityTypeLabelKey] = market.CapacityTypes[mach.Capacity]
	labels[karpv1.NodePoolLabelKey] = s.Name
	zones := b.Zones & mach.Zones
	if bits.OnesCount64(zones) == 1 {
		maps.Copy(labels, d.Market.ZoneLabels[bits.TrailingZeros64(zones)])
		zones = 0
	}
	market.AddDeprecated(labels)
	name := fmt.Sprintf("\x00bin-%d", i)
	labels[corev1.LabelHostname] = name
	like := &model.Node{Claim: name, Pool: s.Name, Labels: labels, Taints: s.NodePool.Spec.Template.Spec.Taints, Launched: true, Initialized: true}
	return &site{bin: b, name: name, zones: zones, like: like, others: nodesLike(d, b, like)}
}

// nodesLike are the planned node's node with the labels of each further kind of machine that it may become. Machines of
// one kind are those that no group tells apart.
func nodesLike(d *Distribution, b *PlannedNode, like *model.Node) []*model.Node {
	asked := map[string]bool{}
	for _, g := range d.Topology.Groups {
		for _, key := range g.Asks {
			if _, has := like.Labels[key]; has && key != karpv1.CapacityTypeLabelKey && !d.Market.Zonal(key) {
				asked[model.NormalizedKey(key)] = true
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	own := &d.Market.Machines[b.Machine]
	possible := market.NewBitset(len(d.Market.Machines))
	for i := d.Market.Sellers[own.Pool].First; i < d.Market.Sellers[own.Pool].Last; i++ {
		if d.Market.Machines[i].Capacity == own.Capacity {
			possible.Set(i)
		}
	}
	for i := range b.content {
		possible.Intersect(b.content[i].variant.Machines)
	}
	keys := slices.Sorted(maps.Keys(asked))
	kind := func(mach *market.Machine) string {
		var text strings.Builder
		for _, key := range keys {
			text.WriteString(mach.Typ.Labels[key] + "\x00")
		}
		return text.String()
	}
	seen := map[string]bool{kind(own): true}
	var kinds []*model.Node
	for i := range possible.All {
		if k := kind(&d.Market.Machines[i]); !seen[k] {
			seen[k] = true
			other := *like
			other.Labels = maps.Clone(like.Labels)
			maps.Copy(other.Labels, d.Market.Machines[i].Typ.Labels)
			market.AddDeprecated(other.Labels)
			kinds = append(kinds, &other)
		}
	}
	return kinds
}

// counts says whether the node may be one of those whose pods the group counts.
func (s *site) counts(g *rules.Group) bool {
	return g.Included == nil || g.Included(s.like) || slices.ContainsFunc(s.others, g.Included)
}

// domain is the site's for a label, if it is settled.
func (a *auditor) domain(s *site, key string) (string, bool) {
	switch {
	case key == corev1.LabelHostname:
		return s.name, true
	case s.slot != nil:
		return a.d.domainOf(s.slot, key)
	}
	value, has := s.like.Labels[key]
	return value, has
}

// play counts the cluster anew and binds what it can until nothing more can be bound. With open, machines that may still
// come to be in several zones are taken to make a domain of each.
func (a *auditor) play(snapshot *model.Snapshot, open bool) {
	for _, g := range a.d.Topology.Groups {
		clear(g.Counts)
		g.Total = 0
	}
	a.d.Topology.Survey(snapshot, a.d.waiting)
	domains := make([]map[string]bool, len(a.d.Topology.Groups))
	for i, g := range a.d.Topology.Groups {
		domains[i] = maps.Clone(g.Domains)
		for _, s := range a.d.Existing {
			a.d.mayBecome(s, g, domains[i])
		}
		for _, s := range a.sites {
			if s.bin == nil || !s.counts(g) {
				continue
			}
			if value, has := a.domain(s, g.Key); has {
				domains[i][value] = true
			}
			for z := range a.d.Market.Zones {
				if open && s.zones&(1<<z) != 0 && a.d.Market.Zonal(g.Key) {
					domains[i][a.d.Market.ZoneLabels[z][g.Key]] = true
				}
			}
		}
	}
	for _, u := range a.units {
		u.bound = 0
	}
	for progress := true; progress; {
		progress = false
		for first := 0; first < len(a.units); {
			last := first + 1
			for last < len(a.units) && a.units[last].it == a.units[first].it {
				last++
			}
			progress = a.bindAll(a.units[first:last], domains) || progress
			first = last
		}
	}
}

// bindAll binds what can be bound of one pod group, in its domains by turns, and says whether that was anything.
func (a *auditor) bindAll(units []*unit, domains []map[string]bool) bool {
	some := false
	for progress := true; progress; {
		progress = false
		for _, u := range units {
			for u.bound < len(u.pods) && a.permits(u, domains) {
				a.bind(u)
				progress, some = true, true
			}
		}
	}
	return some
}

// permits says whether one more of the unit's pods could be bound now.
func (a *auditor) permits(u *unit, domains []map[string]bool) bool {
	r := &u.it.Required
	for i := range r.Spread {
		s := &r.Spread[i]
		if s.Host >= 0 {
			continue // the distribution and the buyer see to the rules about one node
		}
		here, has := a.domain(u.site, s.Key)
		if !has {
			return false
		}
		least := math.MaxInt
		for domain := range domains[s.Place] {
			least = min(least, s.Counts[domain])
		}
		if len(domains[s.Place]) < s.MinDomains {
			least = 0
		}
		if s.Counts[here]+s.Self-min(least, s.Counts[here]) > s.MaxSkew {
			return false
		}
	}
	first := r.First()
	for i := range r.Near {
		if here, has := a.domain(u.site, r.Near[i].Key); !has || !first && r.Near[i].Counts[here] == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.Apart, func(g *rules.Group) bool {
		here, has := a.domain(u.site, g.Key)
		return has && g.Counts[here] > 0
	})
}

func (a *auditor) bind(u *unit) {
	u.bound++
	for _, g := range u.it.Required.Joins {
		g.Total++
		if here, has := a.domain(u.site, g.Key); has && (u.site.slot != nil && u.site.slot.options != nil || u.site.counts(g)) {
			g.Counts[here]++
		}
	}
}

func (a *auditor) stuck() bool {
	return slices.ContainsFunc(a.units, func(u *unit) bool { return u.bound < len(u.pods) })
}

// fence keeps machines out of zones in which nothing is planned for sure.
func (a *auditor) fence() {
	var settled uint64
	for z, name := range a.d.Market.Zones {
		new := func(s *site) bool { return s.bin != nil && s.like.Labels[corev1.LabelTopologyZone] == name }
		old := func(s *ExistingNode) bool { at, _ := a.d.domainOf(s, corev1.LabelTopologyZone); return at == name }
		if slices.ContainsFunc(a.sites, new) || slices.ContainsFunc(a.d.Existing, old) {
			settled |= 1 << z
		}
	}
	for _, s := range a.sites {
		if s.zones&settled != 0 {
			s.zones &= settled
			s.bin.Zones &= settled
		}
	}
}

// settle takes the pods that could not be bound out of the plan.
func (a *auditor) settle(planned []*PlannedNode) []*PlannedNode {
	stuck := map[*model.Pod]bool{}
	for _, u := range a.units {
		for _, pod := range u.pods[u.bound:] {
			stuck[pod] = true
			u.it.Pods = append(u.it.Pods, pod)
			u.it.Unmet = "its topology spread or affinity could not be met with what can be bought for the pods around it"
		}
	}
	a.d.Placements = slices.DeleteFunc(a.d.Placements, func(p model.Placement) bool { return stuck[p.Pod] })
	return slices.DeleteFunc(planned, func(b *PlannedNode) bool {
		for i := range b.content {
			b.drop(&b.content[i], stuck)
		}
		b.content = slices.DeleteFunc(b.content, func(p portion) bool { return len(p.pods) == 0 })
		return len(b.content) == 0
	})
}

// drop takes pods out of a planned node.
func (b *PlannedNode) drop(p *portion, stuck map[*model.Pod]bool) {
	before := len(p.pods)
	p.pods = slices.DeleteFunc(slices.Clone(p.pods), func(pod *model.Pod) bool { return stuck[pod] })
	pieces := before - len(p.pods)
	if before != p.count {
		// A bundle is one piece until its last pod is gone.
		if pieces = 0; len(p.pods) == 0 {
			pieces = p.count
		}
	}
	p.count -= pieces
	solve.Subtract(b.Used, p.request, pieces)
	solve.Subtract(b.Free, p.request, -pieces)
}
