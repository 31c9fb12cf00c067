package plan

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
)

// What was decided about domains was decided before anything was bought. A limit may have kept some of it from being
// bought, and nodes for other pods may have made a domain that nobody reckoned with. So the end of a plan is an audit: it
// plays the binding of all planned pods, and those that the kube-scheduler could not bind are given back.

// site is a node of the plan: one that exists, or a bin.
type site struct {
	slot *slot
	bin  *bin
	// like is a Node that shows what is known of a bin's labels and taints, others show the bin as the further kinds of
	// machine it may become.
	like   *Node
	others []*Node
	name   string
	// zones are where a bin may come to be, while that is open.
	zones uint64
}

// unit is the pods of one item that are planned for one site.
type unit struct {
	it   *item
	site *site
	pods []*Pod
	// bound is how many of them are bound.
	bound int
}

// auditor plays the binding of a plan's pods.
type auditor struct {
	d     *distribution
	sites []*site
	units []*unit
}

// audit gives back what could not be bound, and returns the bins that still have a purpose.
func (d *distribution) audit(snapshot *Snapshot, bins []*bin) []*bin {
	if !slices.ContainsFunc(d.items, func(it *item) bool { return !it.required.empty() }) {
		return bins
	}
	a := &auditor{d: d}
	a.gather(bins)
	// Where a machine comes into a zone in which no other is, it may make a domain of its own.
	a.play(snapshot, true)
	if a.stuck() {
		a.fence()
		a.play(snapshot, false)
	}
	if !a.stuck() {
		return bins
	}
	return a.settle(bins)
}

// gather finds out which pods are planned where.
func (a *auditor) gather(bins []*bin) {
	units := map[*site]map[*item]*unit{}
	add := func(s *site, pod *Pod) {
		it := a.d.home[pod]
		if units[s] == nil {
			units[s] = map[*item]*unit{}
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
	for _, s := range a.d.slots {
		byKey[s.node.Key()] = &site{slot: s, like: s.node, name: s.node.Key()}
	}
	for i := range a.d.placements {
		if s := byKey[a.d.placements[i].Node]; s != nil {
			add(s, a.d.placements[i].Pod)
		}
	}
	for i, b := range bins {
		s := a.d.siteOf(b, i)
		for j := range b.content {
			for _, pod := range b.content[j].pods {
				add(s, pod)
			}
		}
	}
	// In this order every pod had a domain when it was decided about.
	slices.SortStableFunc(a.units, func(x, y *unit) int { return cmp.Compare(x.it.turn, y.it.turn) })
}

// siteOf is the node a bin becomes, as far as that is settled.
func (d *distribution) siteOf(b *bin, i int) *site {
	mach := &d.m.machines[b.machine]
	s := d.m.sellers[mach.pool]
	labels := map[string]string{}
	maps.Copy(labels, mach.typ.Labels)
	maps.Copy(labels, s.labels)
	maps.Copy(labels, d.m.labelsOf(s, b))
	labels[karpv1.CapacityTypeLabelKey] = capacityTypes[mach.capacity]
	labels[karpv1.NodePoolLabelKey] = s.name
	zones := b.zones & mach.zones
	if bits.OnesCount64(zones) == 1 {
		maps.Copy(labels, d.m.zoneLabels[bits.TrailingZeros64(zones)])
		zones = 0
	}
	addDeprecated(labels)
	name := fmt.Sprintf("\x00bin-%d", i)
	labels[corev1.LabelHostname] = name
	like := &Node{Claim: name, Pool: s.name, Labels: labels, Taints: s.NodePool.Spec.Template.Spec.Taints, Launched: true, Initialized: true}
	return &site{bin: b, name: name, zones: zones, like: like, others: d.kindsOf(b, like)}
}

// kindsOf are the bin's node with the labels of each further kind of machine that it may become. Machines of one kind
// are those that no group tells apart.
func (d *distribution) kindsOf(b *bin, like *Node) []*Node {
	asked := map[string]bool{}
	for _, g := range d.t.groups {
		for _, key := range g.asks {
			if _, has := like.Labels[key]; has && key != karpv1.CapacityTypeLabelKey && !d.m.zonal(key) {
				asked[normalizedKey(key)] = true
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	own := &d.m.machines[b.machine]
	possible := newBitset(len(d.m.machines))
	for i := d.m.sellers[own.pool].first; i < d.m.sellers[own.pool].last; i++ {
		if d.m.machines[i].capacity == own.capacity {
			possible.set(i)
		}
	}
	for i := range b.content {
		possible.intersect(b.content[i].variant.machines)
	}
	keys := slices.Sorted(maps.Keys(asked))
	kind := func(mach *machine) string {
		var text strings.Builder
		for _, key := range keys {
			text.WriteString(mach.typ.Labels[key] + "\x00")
		}
		return text.String()
	}
	seen := map[string]bool{kind(own): true}
	var kinds []*Node
	for i := range possible.all {
		if k := kind(&d.m.machines[i]); !seen[k] {
			seen[k] = true
			other := *like
			other.Labels = maps.Clone(like.Labels)
			maps.Copy(other.Labels, d.m.machines[i].typ.Labels)
			addDeprecated(other.Labels)
			kinds = append(kinds, &other)
		}
	}
	return kinds
}

// counts says whether the node may be one of those whose pods the group counts.
func (s *site) counts(g *group) bool {
	return g.included == nil || g.included(s.like) || slices.ContainsFunc(s.others, g.included)
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
func (a *auditor) play(snapshot *Snapshot, open bool) {
	for _, g := range a.d.t.groups {
		clear(g.counts)
		g.total = 0
	}
	a.d.t.survey(snapshot, a.d.waiting)
	domains := make([]map[string]bool, len(a.d.t.groups))
	for i, g := range a.d.t.groups {
		domains[i] = maps.Clone(g.domains)
		for _, s := range a.d.slots {
			a.d.mayBecome(s, g, domains[i])
		}
		for _, s := range a.sites {
			if s.bin == nil || !s.counts(g) {
				continue
			}
			if value, has := a.domain(s, g.key); has {
				domains[i][value] = true
			}
			for z := range a.d.m.zones {
				if open && s.zones&(1<<z) != 0 && a.d.m.zonal(g.key) {
					domains[i][a.d.m.zoneLabels[z][g.key]] = true
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

// bindAll binds what can be bound of one item, in its domains by turns, and says whether that was anything.
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
	r := &u.it.required
	for i := range r.spread {
		s := &r.spread[i]
		if s.host >= 0 {
			continue // the distribution and the buyer see to the rules about one node
		}
		here, has := a.domain(u.site, s.key)
		if !has {
			return false
		}
		least := math.MaxInt
		for domain := range domains[s.place] {
			least = min(least, s.counts[domain])
		}
		if len(domains[s.place]) < s.minDomains {
			least = 0
		}
		if s.counts[here]+s.self-min(least, s.counts[here]) > s.maxSkew {
			return false
		}
	}
	first := r.first()
	for i := range r.near {
		if here, has := a.domain(u.site, r.near[i].key); !has || !first && r.near[i].counts[here] == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.apart, func(g *group) bool {
		here, has := a.domain(u.site, g.key)
		return has && g.counts[here] > 0
	})
}

func (a *auditor) bind(u *unit) {
	u.bound++
	for _, g := range u.it.required.joins {
		g.total++
		if here, has := a.domain(u.site, g.key); has && (u.site.slot != nil && u.site.slot.options != nil || u.site.counts(g)) {
			g.counts[here]++
		}
	}
}

func (a *auditor) stuck() bool {
	return slices.ContainsFunc(a.units, func(u *unit) bool { return u.bound < len(u.pods) })
}

// fence keeps machines out of zones in which nothing is planned for sure.
func (a *auditor) fence() {
	var settled uint64
	for z, name := range a.d.m.zones {
		new := func(s *site) bool { return s.bin != nil && s.like.Labels[corev1.LabelTopologyZone] == name }
		old := func(s *slot) bool { at, _ := a.d.domainOf(s, corev1.LabelTopologyZone); return at == name }
		if slices.ContainsFunc(a.sites, new) || slices.ContainsFunc(a.d.slots, old) {
			settled |= 1 << z
		}
	}
	for _, s := range a.sites {
		if s.zones&settled != 0 {
			s.zones &= settled
			s.bin.zones &= settled
		}
	}
}

// settle takes the pods that could not be bound out of the plan.
func (a *auditor) settle(bins []*bin) []*bin {
	stuck := map[*Pod]bool{}
	for _, u := range a.units {
		for _, pod := range u.pods[u.bound:] {
			stuck[pod] = true
			u.it.pods = append(u.it.pods, pod)
			u.it.unmet = "its topology spread or affinity could not be met with what can be bought for the pods around it"
		}
	}
	a.d.placements = slices.DeleteFunc(a.d.placements, func(p Placement) bool { return stuck[p.Pod] })
	return slices.DeleteFunc(bins, func(b *bin) bool {
		for i := range b.content {
			b.drop(&b.content[i], stuck)
		}
		b.content = slices.DeleteFunc(b.content, func(p portion) bool { return len(p.pods) == 0 })
		return len(b.content) == 0
	})
}

// drop takes pods out of a bin.
func (b *bin) drop(p *portion, stuck map[*Pod]bool) {
	before := len(p.pods)
	p.pods = slices.DeleteFunc(slices.Clone(p.pods), func(pod *Pod) bool { return stuck[pod] })
	pieces := before - len(p.pods)
	if before != p.count {
		// A bundle is one piece until its last pod is gone.
		if pieces = 0; len(p.pods) == 0 {
			pieces = p.count
		}
	}
	p.count -= pieces
	take(b.used, p.request, pieces)
	take(b.free, p.request, -pieces)
}
