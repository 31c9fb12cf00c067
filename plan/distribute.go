package plan

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// distribution places items: on nodes that exist or are on their way, and what finds no room there in lots that are to
// be bought. It decides about domains here, pod by pod in the order of the items; what is bought later fills them.
type distribution struct {
	m     *market
	t     *topology
	items []*item
	slots []*slot
	// waiting are the pods that need a place, and home is the item of each.
	waiting []*Pod
	home    map[*Pod]*item
	// open are the slots whose machine is not known yet.
	open []*slot
	// takers are the others that items of one kind may use, by what tells the kinds apart.
	takers map[string]*row
	// places are takers by the domains they are in.
	places map[string][]place
	// turns counts the items that were placed.
	turns      int
	placements []Placement
	lots       []*lot
	// buysNothing says that only nodes that are there may be used; a preference is then given up only if nothing that can
	// be bought would meet it.
	buysNothing bool
	// buysIn are the zones that something may be bought in for pods that choose their domains; zero means all.
	buysIn uint64
	// now is the time of the snapshot.
	now time.Time
}

func newDistribution(m *market, t *topology, items []*item, home map[*Pod]*item, waiting []*Pod, slots []*slot) *distribution {
	d := &distribution{m: m, t: t, items: items, home: home, waiting: waiting, slots: slots, takers: map[string]*row{}, places: map[string][]place{}}
	for _, s := range slots {
		if s.options != nil {
			d.open = append(d.open, s)
		}
	}
	return d
}

// lot is a number of an item's pods that are to be bought a place, for one choice of domains. Pods that have to be on one
// node are one lot, a bundle, and one piece of it.
type lot struct {
	class    *Class
	request  []int64
	ports    []HostPort
	variants []variant
	allowed  bitset
	rules    rules
	attach   *attachments
	most     int
	// content is what the lot is made of; a lot of single pods has one part.
	content []part
	// bundle says that all of it goes onto one node.
	bundle bool
	// at are the domains that were chosen, by label.
	at map[string]string
	// place tells lots apart that are like no other.
	place int
	// workload is how many waiting pods the workloads have that it is of; zero for bare pods.
	workload int
}

// part is pods of one item, as they were when the lot was made.
type part struct {
	it   *item
	as   *shape
	pods []*Pod
}

// left is how many pieces have no place.
func (l *lot) left() int {
	if l.bundle {
		return min(1, len(l.content[0].pods))
	}
	return len(l.content[0].pods)
}

// place finds a place for an item's pods, giving up one preference after another where there is none.
func (d *distribution) place(it *item) {
	if it.turn == 0 {
		d.turns++
		it.turn = d.turns
	}
	for it.refusal == "" && len(it.pods) > 0 {
		keys := it.keys()
		switch {
		case it.rules.nearHost() != nil:
			d.gather(it, keys)
		case len(keys) > 0:
			d.acrossDomains(it, keys)
		default:
			d.anywhere(it)
		}
		if len(it.pods) == 0 || d.buysNothing && len(it.variants) > 0 || !it.relax() {
			return
		}
		d.m.weigh(it)
	}
}

// anywhere fills slots in their order, and makes a lot of the rest.
func (d *distribution) anywhere(it *item) {
	takers := d.lettingIn(it)
	for d.fillOnce(it, takers) && d.t.alone && it.rules.spreadsHosts() {
		// When all hosts have one more, each of them may have another.
	}
	for _, s := range d.open {
		if len(it.pods) == 0 {
			return
		}
		if n := s.room(it, len(it.pods)); n > 0 && s.willAdmit(it) {
			d.onto(s, it, n)
		}
	}
	if len(it.pods) > 0 && len(it.variants) > 0 && !d.buysNothing {
		d.lots = append(d.lots, newLot(it, it.variants, it.allowed, it.take(len(it.pods))))
	}
}

// fillOnce fills slots in their order as far as there are pods, and says whether that was any, and pods are left.
func (d *distribution) fillOnce(it *item, takers *row) bool {
	before := len(it.pods)
	for i := takers.next(0, it.request); i < len(takers.slots) && len(it.pods) > 0; i = takers.next(i+1, it.request) {
		if n := takers.slots[i].room(it, len(it.pods)); n > 0 {
			d.onto(takers.slots[i], it, n)
		}
	}
	return len(it.pods) > 0 && len(it.pods) < before
}

func newLot(it *item, variants []variant, allowed bitset, pods []*Pod) *lot {
	return &lot{class: it.class, request: it.request, ports: it.class.HostPorts, variants: variants, allowed: allowed, rules: it.rules,
		attach: &it.volumes.attach, most: it.most, place: it.place, workload: it.workloads, content: []part{{it, it.shape, pods}}}
}

// lettingIn are the slots whose machine is known that let the item's pods in, were there room.
func (d *distribution) lettingIn(it *item) *row {
	if it.known.takers == nil {
		it.known.takers = d.findTakers(it)
	}
	return it.known.takers
}

func (d *distribution) findTakers(it *item) *row {
	key := it.kind()
	if takers, known := d.takers[key]; known {
		return takers
	}
	var slots []*slot
	for _, s := range d.slots {
		if s.options == nil && s.admits(it) {
			slots = append(slots, s)
		}
	}
	if !asksDevice(it.class) {
		// Whoever can do without devices takes the nodes that have none first.
		slices.SortStableFunc(slots, func(a, b *slot) int { return cmp.Compare(flag(a.node.hasDevices()), flag(b.node.hasDevices())) })
	}
	d.takers[key] = &row{slots: slots}
	return d.takers[key]
}

// openTo are the claims without a machine that will let the item's pods in.
func (d *distribution) openTo(it *item) []*slot {
	var open []*slot
	for _, s := range d.open {
		if s.willAdmit(it) {
			open = append(open, s)
		}
	}
	return open
}

// kind tells apart items that ask different labels of a node or tolerate different taints.
func (it *item) kind() string {
	if it.known.kind != "" {
		return it.known.kind
	}
	var key strings.Builder
	key.WriteString(selectionKey(it.class))
	key.WriteString(tolerationKey(it.class.Tolerations))
	fmt.Fprintf(&key, "\x00%s\x00%v\x00%v", it.volumes.key, it.wary, asksDevice(it.class))
	for _, t := range it.terms[:min(1, len(it.terms))] {
		for i := range t[len(it.base[0]):] {
			key.WriteString(t[len(it.base[0])+i].id())
		}
	}
	it.known.kind = key.String()
	return it.known.kind
}

// onto puts the item's next n pods on a slot.
func (d *distribution) onto(s *slot, it *item, n int) {
	for _, pod := range it.take(n) {
		d.placements = append(d.placements, Placement{Pod: pod, Node: s.node.Key()})
	}
	d.fill(s, it, n)
}

// fill takes n pods' room on a slot, and counts them.
func (d *distribution) fill(s *slot, it *item, n int) {
	if d.t.log.keeps {
		d.t.log.write(entry{other: &slotFill{slot: s, request: it.request, joins: it.rules.joins, n: n, ports: len(s.ports), attach: s.attach}})
	}
	take(s.free, it.request, n)
	s.ports = append(s.ports, it.class.HostPorts...)
	if !it.volumes.attach.none() {
		if d.t.log.keeps {
			s.attach = s.attach.clone()
		}
		s.attach.put(&it.volumes.attach, n)
	}
	it.rules.count(s.tally, n)
	s.changed()
	d.counted(s, it.rules.joins, n)
}

// counted notes that groups have n pods more on a slot.
func (d *distribution) counted(s *slot, joins []*group, n int) {
	for _, g := range joins {
		g.add(n)
		if value, has := d.domainOf(s, g.key); has && (g.included == nil || g.included(s.node)) {
			g.addAt(value, n)
		}
	}
}

// domainOf is the domain a slot is in, as far as it is known.
func (d *distribution) domainOf(s *slot, key string) (string, bool) {
	value, has := s.node.domain(key)
	if !has && s.options != nil && d.m.zonal(key) {
		var values []string
		for z := range d.m.zones {
			if s.zones&(1<<z) != 0 {
				values = append(values, d.m.zoneLabels[z][key])
			}
		}
		if values = slices.Compact(values); len(values) == 1 {
			return values[0], values[0] != ""
		}
	}
	if !has && s.node.Zone != "" && (key == corev1.LabelTopologyZone || !s.node.Initialized && normalizedKey(key) == corev1.LabelTopologyZone) {
		return s.node.Zone, true
	}
	return value, has
}

// giveBack returns a lot's pods to their items.
func (d *distribution) giveBack(l *lot) {
	for i := range l.content {
		p := &l.content[i]
		p.it.pods = append(p.it.pods, p.pods...)
		for _, g := range p.as.rules.joins {
			g.add(-len(p.pods))
			if domain, chosen := l.at[g.key]; chosen {
				g.addAt(domain, -len(p.pods))
			}
		}
		p.pods = nil
	}
}

// inOrder are items as they are placed: those that say where others have to be come after these, and those that ask for
// devices first, so that nobody who can do without takes their place.
func inOrder(items []*item, virtual bool) []*item {
	var order []*item
	for _, it := range items {
		if it.virtual == virtual && len(it.pods) > 0 {
			order = append(order, it)
		}
	}
	rank := func(it *item) int {
		follows := slices.ContainsFunc(it.rules.near, func(r nearRule) bool { return !r.self })
		switch {
		case follows:
			return 3
		case asksDevice(it.class):
			return -1
		case it.rules.nearHost() != nil:
			return 1
		case len(it.rules.keys()) > 0:
			return 0
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b *item) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.choice(), b.choice()))
	})
	if i := slices.IndexFunc(order, func(it *item) bool { return rank(it) == 3 }); i >= 0 {
		inTrain(order[i:])
	}
	return order
}

// choice is small for pods that close domains to others, or are kept out of them, and have few to choose from. They go
// first.
func (it *item) choice() int {
	if !slices.ContainsFunc(it.rules.apart, func(g *group) bool { return g.host < 0 }) {
		return math.MaxInt
	}
	var zones uint64
	for i := range it.variants {
		zones |= it.variants[i].zones
	}
	return bits.OnesCount64(zones)
}

// inTrain orders followers so that those who are followed come first, as far as they do not follow each other.
func inTrain(items []*item) {
	for first := range items {
		leads := func(it *item) bool {
			return !slices.ContainsFunc(items[first:], func(other *item) bool {
				return other != it && slices.ContainsFunc(it.rules.near, func(r nearRule) bool { return slices.Contains(other.rules.joins, r.group) })
			})
		}
		if i := slices.IndexFunc(items[first:], leads); i > 0 {
			it := items[first+i]
			copy(items[first+1:first+i+1], items[first:first+i])
			items[first] = it
		}
	}
}
