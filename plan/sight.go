package plan

import "slices"

// sight is how far was looked for places for an item's pods. Slots are filled in an order, and those behind the last one
// that was looked at have no part in the answer.
type sight struct {
	// farthest is the last slot that was looked at; nil where none was.
	farthest *slot
	// all says that every slot was looked at.
	all bool
	// byRules says that rules about other pods had a say, keyed that domains had.
	byRules, keyed bool
}

// look is what a fork looked at for the pods of an item.
type look struct {
	home *item
	sight
}

// before says whether a slot comes before another in the order in which the item's pods fill them.
func (it *item) before(s, other *slot) bool {
	if !asksDevice(it.class) {
		if a, b := flag(s.node.hasDevices()), flag(other.node.hasDevices()); a != b {
			return a < b
		}
	}
	return s.rank < other.rank
}

// reach notes that a slot was looked at.
func (t *sight) reach(it *item, s *slot) {
	if !t.all && (t.farthest == nil || it.before(t.farthest, s)) {
		t.farthest = s
	}
}

// into notes how far was looked in a cell.
func (t *sight) into(it *item, c *cell) {
	switch {
	case c.known == nil:
	case c.next < len(c.known.slots):
		t.reach(it, c.known.slots[c.next])
	default:
		t.all = true
	}
}

// covers says whether a slot may have been looked at.
func (t *sight) covers(it *item, s *slot) bool {
	return t.all || t.farthest != nil && !it.before(t.farthest, s)
}

// note keeps what was looked at for the items of a fork.
func (f *field) note(items []*item) {
	for _, it := range items {
		if it.turn > 0 {
			it.looked.byRules, it.looked.keyed = !it.home.plain(), len(it.home.keys()) > 0
		}
		f.looks = append(f.looks, look{it.home, it.looked})
	}
}

// plain says that the item's pods do not mind any others, whatever they would like besides.
func (it *item) plain() bool {
	return it.required.empty() && !slices.ContainsFunc(it.preferences, func(p preference) bool { return p.spread != nil || p.apart != nil || len(p.near) > 0 })
}

// fitsNowhere says that one of the item's pods by itself finds no slot with room, whatever others do.
func (f *field) fitsNowhere(it *item) bool {
	if it.refusal != "" {
		return true
	}
	if it.choosy() {
		return false
	}
	takers := f.d.lettingIn(it)
	for i := takers.next(0, it.request); i < len(takers.slots); i = takers.next(i+1, it.request) {
		it.looked.reach(it, takers.slots[i])
		if takers.slots[i].holds(it) {
			return false
		}
	}
	it.looked.all = true
	return true
}

// choosy says that there are nodes which the item's pods would like better than others that let them in as well.
func (it *item) choosy() bool {
	return slices.ContainsFunc(it.preferences, func(p preference) bool { return p.node != nil || p.wary })
}

// holds says whether one of the item's pods has room on the node, as far as rules about other pods have no say.
func (s *slot) holds(it *item) bool {
	return fits(it.request, s.free) && !portsConflict(s.ports, it.class.HostPorts) && s.attach.holds(&it.volumes.attach, 1) > 0
}
