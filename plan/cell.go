package plan

import "slices"

// cell is one choice of a domain for each label that an item's rules are about: the nodes there, and what can be bought
// there.
type cell struct {
	// values are the domains, in the order of the keys; a label that the nodes do not have is absent.
	values []string
	// known are the slots there whose machine is known, nil if there are none; open are the others.
	known *row
	open  []*slot
	// next is the first slot that may still have room.
	next     int
	variants []variant
	price    float64
	// fresh are the pods that new nodes are bought for.
	fresh []*Pod
	// closed says that no more pods find room.
	closed bool
}

// size is how many slots there are, at the one in a place.
func (c *cell) size() int {
	if c.known == nil {
		return len(c.open)
	}
	return len(c.known.slots) + len(c.open)
}

func (c *cell) at(place int) *slot {
	if c.known == nil {
		return c.open[place]
	}
	if place < len(c.known.slots) {
		return c.known.slots[place]
	}
	return c.open[place-len(c.known.slots)]
}

// all calls yield for every slot in order.
func (c *cell) all(yield func(*slot) bool) {
	for i := range c.size() {
		if !yield(c.at(i)) {
			return
		}
	}
}

func (c *cell) has(s *slot) bool {
	return c.known != nil && c.known.has(s) || slices.Contains(c.open, s)
}

// advance makes next the first slot that has room for another of the item's pods, and says whether there is one.
func (c *cell) advance(it *item) bool {
	for c.next < c.size() {
		if c.known != nil && c.next < len(c.known.slots) {
			if c.next = c.known.next(c.next, it.request); c.next == len(c.known.slots) {
				continue
			}
		}
		if c.at(c.next).room(it, 1) > 0 {
			return true
		}
		c.next++
	}
	return false
}
