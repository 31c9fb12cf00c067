package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
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
	// rows are those it stands in whose trees have to know what is free.
	rows []treePlace
}

// roomTree is existing nodes in the order in which they are filled. Finding the next one with room costs the logarithm of
// their number and not the number, however full they are: a tree above them knows the most that any existing node beneath
// has free of each resource.
type roomTree struct {
	Slots []*ExistingNode
	// tree has its root at 1 and the existing nodes as its leaves, one vector each; nil until somebody looks for room.
	tree   []int64
	leaves int
	dims   int
}

// shortRow is how many existing nodes are looked at one by one.
const shortRow = 16

// treePlace is an existing node's place in a row.
type treePlace struct {
	row   *roomTree
	place int
}

// Next is the place of the first existing node from a place on that has room for a request, or the number of existing
// nodes if there is none. Only resources are looked at.
func (r *roomTree) Next(from int, request []int64) int {
	if len(r.Slots)-from <= shortRow {
		for ; from < len(r.Slots); from++ {
			if s := r.Slots[from]; !s.Closed && market.Fits(request, s.Free) {
				break
			}
		}
		return from
	}
	if r.tree == nil {
		r.grow()
	}
	return r.search(1, 0, r.leaves, from, request)
}

// search looks for the existing node beneath a node of the tree, which stands for the leaves from first to last.
func (r *roomTree) search(node, first, last, from int, request []int64) int {
	if last <= from || !market.Fits(request, r.tree[node*r.dims:(node+1)*r.dims]) {
		return len(r.Slots)
	}
	if last-first == 1 {
		return first
	}
	middle := (first + last) / 2
	if found := r.search(2*node, first, middle, from, request); found < len(r.Slots) {
		return found
	}
	return r.search(2*node+1, middle, last, from, request)
}

// grow plants the tree.
func (r *roomTree) grow() {
	r.dims = len(r.Slots[0].Free)
	for r.leaves = 1; r.leaves < len(r.Slots); r.leaves *= 2 {
	}
	r.tree = make([]int64, 2*r.leaves*r.dims)
	for i := range r.tree {
		r.tree[i] = noRoom
	}
	for i, s := range r.Slots {
		s.rows = append(s.rows, treePlace{r, i})
		r.leaf(i)
	}
	for node := r.leaves - 1; node > 0; node-- {
		r.join(node)
	}
}

// noRoom is less than anything that can be asked for.
const noRoom = -1 << 62

func (r *roomTree) leaf(place int) {
	at := r.tree[(r.leaves+place)*r.dims:]
	if s := r.Slots[place]; !s.Closed {
		copy(at[:r.dims], s.Free)
		return
	}
	for d := range r.dims {
		at[d] = noRoom
	}
}

// join writes what the two halves of a node have, and says whether that is news.
func (r *roomTree) join(node int) bool {
	at, left, right := r.tree[node*r.dims:(node+1)*r.dims], r.tree[2*node*r.dims:], r.tree[(2*node+1)*r.dims:]
	news := false
	for d := range at {
		if most := max(left[d], right[d]); most != at[d] {
			at[d], news = most, true
		}
	}
	return news
}

// changed tells the rows an existing node stands in that it has other room.
func (s *ExistingNode) changed() {
	for _, at := range s.rows {
		at.row.leaf(at.place)
		for node := (at.row.leaves + at.place) / 2; node > 0 && at.row.join(node); node /= 2 {
		}
	}
}

// Close and open take an existing node out of use and back.
func (s *ExistingNode) Close() { s.Closed = true; s.changed() }

// Open undoes Close.
func (s *ExistingNode) Open() { s.Closed = false; s.changed() }
