package plan

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// What a fork says follows from less than the whole cluster. It looks at the pods of the nodes in question, at what can be
// bought, at how the pods of the groups that its rules are about are spread, and, slot after slot in the order in which
// they are filled, at those that its pods find room on. A slot that none of its pods could have been put on, before or
// now, or that comes behind all at which it has looked, is as if it were not there. So an answer holds when
//
//   - what can be bought, and for how much, is the same, machine by machine;
//   - the nodes in question are the same objects, with the same pods, and nobody's pods are to come to them;
//   - each of their pods is of an item that is the same as before, by class, volumes, rules and place in the order;
//   - where rules have a say, their groups count the same pods in the same domains, and no node has come, gone or changed
//     its labels, taints or state where these domains are those of labels;
//   - no slot that has changed could have taken one of the pods before it was known where all of them go, neither as it was
//     nor as it is.
//
// Slots that have not changed have to be filled in the same order among themselves. Whatever cannot be compared makes all
// answers void. That this is enough is held by a test which compares every evaluation with one from scratch
// (memory_test.go).

// change is how two fields differ.
type change struct {
	was, is *field
	// heirs are the items that are what an earlier one was; nil for those that have none.
	heirs map[*item]*item
	// alike are the groups of now, by those of before that are of the same kind.
	alike map[*group]*group
	kin   map[kinship][]*item
	// settled says of groups of before that they count the same pods now.
	settled map[*group]bool
	// moved are the slots that have changed, before and now; nil where there was or is none.
	moved []movedSlot
	// takers are those of them that could take a pod of an item, by the item of before.
	takers map[*item][]movedSlot
	// changed are the nodes that have, by key, and kept what is known of the others.
	changed map[string]bool
	kept    map[*Node]bool
	// rebuilt says that nodes have come or gone, or that which pods they let in, or which domains they make, has changed.
	rebuilt bool
}

type movedSlot struct{ was, is *slot }

// kinship is what the items that could be the same have in common.
type kinship struct {
	class   *Class
	volumes string
	virtual bool
}

// compare finds out how two fields differ, and whether that can be said in terms of single slots and groups at all.
func compare(was, is *field) (*change, bool) {
	if !sameTerms(&was.in, &is.in) || !was.d.m.same(is.d.m) || !was.d.m.dims.same(is.d.m.dims) || !was.d.m.book.alike(is.d.m.book) {
		return nil, false
	}
	c := &change{was: was, is: is, heirs: map[*item]*item{}, alike: map[*group]*group{}, kin: map[kinship][]*item{}, settled: map[*group]bool{}, takers: map[*item][]movedSlot{},
		changed: map[string]bool{}, kept: map[*Node]bool{}}
	for id, g := range was.d.t.byID {
		if now := is.d.t.byID[id]; now != nil {
			c.alike[g] = now
		}
	}
	for _, it := range is.items {
		k := kinship{it.class, it.volumes.key, it.virtual}
		c.kin[k] = append(c.kin[k], it)
	}
	return c, c.compareSlots()
}

// sameTerms says whether two questions are asked under the same terms, as far as the market does not show them.
func sameTerms(a, b *Input) bool {
	return a.Preferences == b.Preferences && preferNoSchedule(a) == preferNoSchedule(b) && maps.EqualFunc(a.Snapshot.Namespaces, b.Snapshot.Namespaces, maps.Equal)
}

// same says whether the same can be bought at the same prices.
func (m *market) same(other *market) bool {
	return m.policy == other.policy && m.nominates == other.nominates && slices.Equal(m.zones, other.zones) && slices.EqualFunc(m.zoneLabels, other.zoneLabels, maps.Equal) &&
		slices.EqualFunc(m.sellers, other.sellers, (*seller).same) && slices.EqualFunc(m.machines, other.machines, sameMachine) && slices.Equal(m.zonePrice, other.zonePrice) &&
		slices.EqualFunc(m.reservations, other.reservations, func(a, b reservation) bool { return a.left == b.left && maps.Equal(a.labels, b.labels) }) &&
		maps.EqualFunc(m.daemonPorts, other.daemonPorts, slices.Equal)
}

func (s *seller) same(other *seller) bool {
	if s.name != other.name || s.closed != other.closed || s.first != other.first || s.last != other.last || !slices.Equal(s.budget, other.budget) {
		return false
	}
	// The status of a pool changes with every node, and says nothing about what it sells.
	return s.NodePool == other.NodePool || reflect.DeepEqual(&s.NodePool.Spec, &other.NodePool.Spec)
}

func sameMachine(a, b machine) bool {
	return a.typ == b.typ && a.pool == b.pool && a.capacity == b.capacity && a.reservation == b.reservation && a.zones == b.zones && a.offered == b.offered && a.where == b.where &&
		a.price == b.price && slices.Equal(a.usable, b.usable)
}

func (d *dimensions) same(other *dimensions) bool {
	return slices.Equal(d.extended, other.extended) && slices.EqualFunc(d.caps, other.caps, func(a, b hostCap) bool { return a.most == b.most && a.group.id == b.group.id })
}

// alike says whether two books say the same of new nodes.
func (b *volumeBook) alike(other *volumeBook) bool {
	return maps.Equal(b.limited, other.limited) && maps.EqualFunc(b.typical, other.typical, maps.Equal)
}

// compareSlots finds the slots that have changed. Those that have not must be filled in the same order as before.
func (c *change) compareSlots() bool {
	if len(c.was.d.open) != len(c.is.d.open) {
		return false
	}
	changed := c.changed
	for key, st := range c.is.stands {
		before := c.was.stands[key]
		switch {
		case before == nil:
			c.rebuilt, changed[key] = true, true
		case st.node != before.node && c.sameButInName(st, before):
		case !st.sameAs(before):
			c.rebuilt = c.rebuilt || !st.servesAs(before)
			changed[key] = true
		case c.is.movable[st.node] != c.was.movable[before.node]:
			changed[key] = true
		}
	}
	for key := range c.was.stands {
		if c.is.stands[key] == nil {
			c.rebuilt, changed[key] = true, true
		}
	}
	for key := range changed {
		moved := movedSlot{c.was.stands[key].able(), c.is.stands[key].able()}
		if moved.was != nil && moved.was.options != nil || moved.is != nil && moved.is.options != nil {
			return false
		}
		if moved.was != nil || moved.is != nil {
			c.moved = append(c.moved, moved)
		}
	}
	stays := func(s *slot) bool { return !changed[s.node.Key()] }
	return slices.EqualFunc(only(c.was.d.slots, stays), only(c.is.d.slots, stays), func(a, b *slot) bool { return a.node.Key() == b.node.Key() })
}

func only(slots []*slot, keep func(*slot) bool) []*slot {
	rest := make([]*slot, 0, len(slots))
	for _, s := range slots {
		if keep(s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// able is the slot of a stand that may be filled, if there is one.
func (st *stand) able() *slot {
	if st == nil || st.gone {
		return nil
	}
	return st.slot
}

// sameButInName says that a node is another object in which nothing has changed that matters to pods of others: a pod on it
// has become Ready, or its kubelet has told that all is well.
func (c *change) sameButInName(st, before *stand) bool {
	a, b := st.node, before.node
	return c.is.movable[a] == c.was.movable[b] && st.servesAs(before) && st.sameRoom(before) && a.InstanceType == b.InstanceType && a.CapacityType == b.CapacityType &&
		disruptionCost(a) == disruptionCost(b) && len(st.own) == len(before.own) && a.hasDevices() == b.hasDevices() && (st.slot == nil || c.sameTally(st.slot, before.slot))
}

// sameTally says that a slot has as many pods as before of each group over hostnames that there was before.
func (c *change) sameTally(s, before *slot) bool {
	for g, now := range c.alike {
		if g.host >= 0 && s.tally[now.host] != before.tally[g.host] {
			return false
		}
	}
	return true
}

// sameAs says that nothing about a node, and what is free on it, has changed.
func (st *stand) sameAs(before *stand) bool { return st.node == before.node && st.sameRoom(before) }

// sameRoom says so of what is free.
func (st *stand) sameRoom(before *stand) bool {
	if st.gone != before.gone || st.leaving != before.leaving || (st.slot == nil) != (before.slot == nil) || !slices.Equal(st.guests, before.guests) {
		return false
	}
	if st.slot == nil {
		return true
	}
	a, b := st.slot, before.slot
	return slices.Equal(a.free, b.free) && slices.Equal(a.ports, b.ports) && a.attach.same(b.attach) && slices.Equal(a.options, b.options) && a.zones == b.zones
}

// servesAs says that a node lets in the same pods as before, in the same domains, as long as there is room.
func (st *stand) servesAs(before *stand) bool {
	a, b := st.node, before.node
	return st.gone == before.gone && st.leaving == before.leaving && (st.slot == nil) == (before.slot == nil) && a.Initialized == b.Initialized && a.Zone == b.Zone &&
		a.Launched == b.Launched && a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && slices.EqualFunc(a.Taints, b.Taints, sameTaint) && slices.EqualFunc(a.StartupTaints, b.StartupTaints, sameTaint)
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

func (r *attachRoom) same(other *attachRoom) bool {
	if r == nil || other == nil {
		return r == other
	}
	return maps.Equal(r.left, other.left) && maps.Equal(r.mounted, other.mounted)
}

// heir is the item that is what an earlier one was; nil if there is none.
func (c *change) heir(it *item) *item {
	heir, known := c.heirs[it]
	if !known {
		for _, other := range c.kin[kinship{it.class, it.volumes.key, it.virtual}] {
			if c.sameItem(it, other) {
				heir = other
				break
			}
		}
		c.heirs[it] = heir
	}
	return heir
}

func (c *change) sameItem(a, b *item) bool {
	first, now := a.pods[0], b.pods[0]
	return a.refusal == b.refusal && first.Labels == now.Labels && first.Priority == now.Priority &&
		c.sameRules(&a.required, &b.required) && slices.EqualFunc(a.preferences, b.preferences, c.samePreference)
}

func (c *change) sameGroup(a, b *group) bool {
	if a == nil || b == nil {
		return a == b
	}
	return c.alike[a] == b
}

func (c *change) sameRules(a, b *rules) bool {
	return slices.EqualFunc(a.spread, b.spread, c.sameSpread) && slices.EqualFunc(a.near, b.near, c.sameNear) &&
		slices.EqualFunc(a.apart, b.apart, c.sameGroup) && slices.EqualFunc(a.joins, b.joins, c.sameGroup)
}

func (c *change) sameSpread(a, b spreadRule) bool {
	return c.sameGroup(a.group, b.group) && a.maxSkew == b.maxSkew && a.minDomains == b.minDomains && a.self == b.self
}

func (c *change) sameNear(a, b nearRule) bool {
	return c.sameGroup(a.group, b.group) && a.self == b.self
}

// samePreference takes it for granted that the preferences are those of one class.
func (c *change) samePreference(a, b preference) bool {
	if (a.spread == nil) != (b.spread == nil) || a.spread != nil && !c.sameSpread(*a.spread, *b.spread) {
		return false
	}
	return a.wary == b.wary && (a.node == nil) == (b.node == nil) && c.sameGroup(a.apart, b.apart) && slices.EqualFunc(a.near, b.near, c.sameNear)
}

// countsAsBefore says that a group of before counts the same pods in the same domains now. What is on single nodes is for
// these to show.
func (c *change) countsAsBefore(g *group) bool {
	settled, known := c.settled[g]
	if !known {
		now := c.alike[g]
		settled = now != nil && g.total == now.total
		if settled && g.host < 0 {
			settled = maps.Equal(g.counts, now.counts) && maps.Equal(g.domains, now.domains)
		}
		c.settled[g] = settled
	}
	return settled
}

// rulesHold says that nothing has changed for the rules of an item of before.
func (c *change) rulesHold(it *item) bool {
	hold := func(r *rules) bool {
		return !slices.ContainsFunc(r.spread, func(s spreadRule) bool { return !c.countsAsBefore(s.group) }) &&
			!slices.ContainsFunc(r.near, func(n nearRule) bool { return !c.countsAsBefore(n.group) }) &&
			!slices.ContainsFunc(r.apart, func(g *group) bool { return !c.countsAsBefore(g) })
	}
	return hold(&it.required) && !slices.ContainsFunc(it.preferences, func(p preference) bool {
		liked := rules{near: p.near}
		if p.spread != nil {
			liked.spread = []spreadRule{*p.spread}
		}
		if p.apart != nil {
			liked.apart = []*group{p.apart}
		}
		return !hold(&liked)
	})
}

// keeps says that a node is there as it was, that nobody's pods are to come to it, and that its own are of the same items.
func (c *change) keeps(n *Node) bool {
	keeps, known := c.kept[n]
	if !known {
		was, is := c.was.stands[n.Key()], c.is.stands[n.Key()]
		keeps = was != nil && is != nil && was.node == n && is.node == n && !is.gone && len(was.guests)+len(is.guests) == 0 &&
			len(is.own) == len(was.own) && !slices.ContainsFunc(is.own, func(pod *Pod) bool {
			before := c.was.d.home[pod]
			return before == nil || c.heir(before) != c.is.d.home[pod]
		})
		c.kept[n] = keeps
	}
	return keeps
}

// holds says whether an answer still holds, and what it looks at now.
func (c *change) holds(a *answer) ([]look, bool) {
	if slices.ContainsFunc(a.nodes, func(n *Node) bool { return !c.keeps(n) }) {
		return nil, false
	}
	looks := make([]look, len(a.looks))
	for i := range a.looks {
		now, holds := c.follow(&a.looks[i])
		if !holds {
			return nil, false
		}
		looks[i] = now
	}
	return looks, true
}

// follow says whether looking once more would show the same, and how far that goes.
func (c *change) follow(l *look) (look, bool) {
	heir := c.heir(l.home)
	if heir == nil || l.keyed && c.rebuilt || l.byRules && !c.rulesHold(l.home) {
		return look{}, false
	}
	now := look{home: heir, sight: l.sight}
	if l.farthest != nil {
		now.farthest = c.is.stands[l.farthest.node.Key()].able()
		now.all = now.all || now.farthest == nil || c.changed[l.farthest.node.Key()]
	}
	for _, s := range c.takersOf(l.home, heir) {
		if s.was != nil && l.covers(l.home, s.was) || s.is != nil && now.covers(heir, s.is) {
			return look{}, false
		}
	}
	return now, true
}

// takersOf are the slots that have changed and could take one of an item's pods, before or now.
func (c *change) takersOf(it, heir *item) []movedSlot {
	takers, known := c.takers[it]
	if !known {
		request := c.is.d.m.dims.vector(it.class.Requests)
		for _, s := range c.moved {
			can := movedSlot{}
			if s.was != nil && s.was.could(it, request) {
				can.was = s.was
			}
			if s.is != nil && s.is.could(heir, request) {
				can.is = s.is
			}
			if can.was != nil || can.is != nil {
				takers = append(takers, can)
			}
		}
		c.takers[it] = takers
	}
	return takers
}

// could says whether one of the item's pods might be put on the slot, whatever it would like besides and whatever rules
// about other pods say.
func (s *slot) could(it *item, request []int64) bool {
	return fits(request, s.free) && !portsConflict(s.ports, it.class.HostPorts) && s.attach.holds(&it.volumes.attach, 1) > 0 &&
		repelledBy(lastingTaints(s.node), it.class.Tolerations) == nil && slices.ContainsFunc(it.base, func(t term) bool {
		return t.admits(s.node.Labels) || !s.node.Initialized && t.normalized().admits(s.node.Labels)
	})
}
