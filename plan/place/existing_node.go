package place

import (
	"math"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// ExistingNode is a node that exists or is on its way, with what is free on it.
type ExistingNode struct {
	Node  *model.Node
	Free  []int64
	Ports []model.HostPort
	// Attach is how many volumes the node can still attach.
	Attach *rules.AttachmentRoom
	// options are the machines a claim without one may still become; nil once it is launched.
	options market.Bitset
	zones   uint64
	// Tally counts the pods of the groups over hostnames, which topology knows.
	Tally    []int32
	topology *rules.Topology
	// Closed says that nothing is to be put on it for the time being.
	Closed bool
	// blocks are what the blocks that it is in have free at most.
	blocks [][]int64
}

// nodeRow is existing nodes in the order in which they are filled. There may be many, and most of them full: what the
// nodes of a block have free at most says whether it is worth looking at them.
type nodeRow struct {
	Slots []*ExistingNode
	// most is, for each block, at least what any existing node in it has free of each resource; nil until somebody looks.
	most [][]int64
}

// rowBlock is how many existing nodes make a block.
const rowBlock = 32

// Next is the place of the first existing node from a place on that has room for a request, or the number of existing
// nodes if there is none. Only resources are looked at.
func (r *nodeRow) Next(from int, request []int64) int {
	if r.most == nil {
		r.divide()
	}
	for from < len(r.Slots) {
		block := from / rowBlock
		end := min(len(r.Slots), (block+1)*rowBlock)
		if solve.Fits(request, r.most[block]) {
			for ; from < end; from++ {
				if s := r.Slots[from]; !s.Closed && solve.Fits(request, s.Free) {
					return from
				}
			}
			r.measure(block)
		}
		from = end
	}
	return len(r.Slots)
}

// divide makes the blocks of a row.
func (r *nodeRow) divide() {
	r.most = make([][]int64, (len(r.Slots)+rowBlock-1)/rowBlock)
	for i, s := range r.Slots {
		if i%rowBlock == 0 {
			r.most[i/rowBlock] = make([]int64, len(s.Free))
			r.measure(i / rowBlock)
		}
		s.blocks = append(s.blocks, r.most[i/rowBlock])
	}
}

// measure finds out what the existing nodes of a block have free at most. What is taken of it later is noticed when
// somebody has looked in vain.
func (r *nodeRow) measure(block int) {
	most := r.most[block]
	for d := range most {
		most[d] = math.MinInt64
	}
	for _, s := range r.Slots[block*rowBlock : min(len(r.Slots), (block+1)*rowBlock)] {
		if !s.Closed {
			atLeast(most, s.Free)
		}
	}
}

// atLeast raises amounts to those that are free.
func atLeast(amounts, free []int64) {
	for d := range amounts {
		amounts[d] = max(amounts[d], free[d])
	}
}

// changed tells the blocks an existing node is in that it may have more room.
func (s *ExistingNode) changed() {
	for _, most := range s.blocks {
		atLeast(most, s.Free)
	}
}

// Close takes an existing node out of use.
func (s *ExistingNode) Close() { s.Closed = true }

// Open undoes Close.
func (s *ExistingNode) Open() { s.Closed = false; s.changed() }
