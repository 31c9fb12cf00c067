package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// domainChoice is one choice of a domain for each label that a pod group's rules are about: the nodes there, and what can
// be bought there.
type domainChoice struct {
	// at are the domains by label; a label that the nodes do not have is not there.
	at map[string]string
	// known are the existing nodes there whose machine is known; open are the others.
	known *nodeRow
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

// size is how many existing nodes there are, node the one in a place.
func (c *domainChoice) size() int { return len(c.known.Slots) + len(c.open) }

func (c *domainChoice) node(place int) *ExistingNode {
	if place < len(c.known.Slots) {
		return c.known.Slots[place]
	}
	return c.open[place-len(c.known.Slots)]
}

// nodes calls yield for every existing node in order.
func (c *domainChoice) nodes(yield func(*ExistingNode) bool) {
	for i := range c.size() {
		if !yield(c.node(i)) {
			return
		}
	}
}

// advance makes next the first existing node that has room for another of the pod group's pods, and says whether there is
// one. When all hosts have one more of pods that are spread over them, it begins again.
func (c *domainChoice) advance(it *PodGroup) bool {
	for {
		for ; c.next < c.size(); c.next++ {
			if c.next < len(c.known.Slots) {
				c.next = c.known.Next(c.next, it.Request)
			}
			if c.next < c.size() && c.node(c.next).Room(it, 1) > 0 {
				return true
			}
		}
		floors := it.Rules.Floors()
		if floors <= c.floors {
			return false
		}
		c.floors, c.next = floors, 0
	}
}
