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
	// row are the existing nodes there that may let the pods in.
	row *nodeRow
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

// advance makes next the first existing node that has room for another of the pod group's pods, and says whether there is
// one. When all hosts have one more of pods that are spread over them, it begins again.
func (c *domainChoice) advance(it *PodGroup) bool {
	for {
		for ; c.next < len(c.row.Slots); c.next++ {
			c.next = c.row.Next(c.next, it.Request)
			if c.next < len(c.row.Slots) && c.row.Slots[c.next].Room(it, 1) > 0 {
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
