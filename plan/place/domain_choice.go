package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// domainChoice is one choice of a domain for each label that a pod group's rules are about: the nodes there, and what can
// be bought there.
type domainChoice struct {
	// values are the domains, in the order of the keys; a label that the nodes do not have is absent.
	values []string
	// known are the existing nodes there whose machine is known, nil if there are none; open are the others.
	known *roomTree
	open  []*ExistingNode
	// next is the first existing node that may still have room, as long as the rules' floors are these.
	next     int
	floors   int
	variants []market.Variant
	price    float64
	// fresh are the pods that new nodes are bought for.
	fresh []*model.Pod
	// closed says that no more pods find room.
	closed bool
}

// size is how many existing nodes there are, at the one in a place.
func (c *domainChoice) size() int {
	if c.known == nil {
		return len(c.open)
	}
	return len(c.known.Slots) + len(c.open)
}

func (c *domainChoice) at(place int) *ExistingNode {
	if c.known == nil {
		return c.open[place]
	}
	if place < len(c.known.Slots) {
		return c.known.Slots[place]
	}
	return c.open[place-len(c.known.Slots)]
}

// all calls yield for every existing node in order.
func (c *domainChoice) all(yield func(*ExistingNode) bool) {
	for i := range c.size() {
		if !yield(c.at(i)) {
			return
		}
	}
}

func (c *domainChoice) has(s *ExistingNode) bool {
	return c.known != nil && c.known.has(s) || slices.Contains(c.open, s)
}

// advance makes next the first existing node that has room for another of the pod group's pods, and says whether there is
// one. When all hosts have one more of pods that are spread over them, it begins again.
func (c *domainChoice) advance(it *PodGroup) bool {
	if c.advanceOnce(it) {
		return true
	}
	floors := it.Rules.Floors()
	if floors <= c.floors {
		return false
	}
	c.floors, c.next = floors, 0
	return c.advanceOnce(it)
}

func (c *domainChoice) advanceOnce(it *PodGroup) bool {
	for c.next < c.size() {
		if c.known != nil && c.next < len(c.known.Slots) {
			if c.next = c.known.Next(c.next, it.Request); c.next == len(c.known.Slots) {
				continue
			}
		}
		if c.at(c.next).Room(it, 1) > 0 {
			return true
		}
		c.next++
	}
	return false
}
