package plan

import "slices"

// row is slots in the order in which they are filled. Finding the next one with room costs the logarithm of their number
// and not the number, however full they are: a tree above them knows the most that any slot beneath has free of each
// resource.
type row struct {
	slots []*slot
	// tree has its root at 1 and the slots as its leaves, one vector each; nil until somebody looks for room.
	tree   []int64
	leaves int
	dims   int
}

// shortRow is how many slots are looked at one by one.
const shortRow = 16

// rowAt is a slot's place in a row.
type rowAt struct {
	row   *row
	place int
}

// next is the place of the first slot from a place on that has room for a request, or the number of slots if there is
// none. Only resources are looked at.
func (r *row) next(from int, request []int64) int {
	if len(r.slots)-from <= shortRow {
		for ; from < len(r.slots); from++ {
			if s := r.slots[from]; !s.closed && fits(request, s.free) {
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

// search looks for the slot beneath a node of the tree, which stands for the leaves from first to last.
func (r *row) search(node, first, last, from int, request []int64) int {
	if last <= from || !fits(request, r.tree[node*r.dims:(node+1)*r.dims]) {
		return len(r.slots)
	}
	if last-first == 1 {
		return first
	}
	middle := (first + last) / 2
	if found := r.search(2*node, first, middle, from, request); found < len(r.slots) {
		return found
	}
	return r.search(2*node+1, middle, last, from, request)
}

// grow plants the tree.
func (r *row) grow() {
	r.dims = len(r.slots[0].free)
	for r.leaves = 1; r.leaves < len(r.slots); r.leaves *= 2 {
	}
	r.tree = make([]int64, 2*r.leaves*r.dims)
	for i := range r.tree {
		r.tree[i] = noRoom
	}
	for i, s := range r.slots {
		s.rows = append(s.rows, rowAt{r, i})
		r.leaf(i)
	}
	for node := r.leaves - 1; node > 0; node-- {
		r.join(node)
	}
}

// noRoom is less than anything that can be asked for.
const noRoom = -1 << 62

func (r *row) leaf(place int) {
	at := r.tree[(r.leaves+place)*r.dims:]
	if s := r.slots[place]; !s.closed {
		copy(at[:r.dims], s.free)
		return
	}
	for d := range r.dims {
		at[d] = noRoom
	}
}

// join writes what the two halves of a node have, and says whether that is news.
func (r *row) join(node int) bool {
	at, left, right := r.tree[node*r.dims:(node+1)*r.dims], r.tree[2*node*r.dims:], r.tree[(2*node+1)*r.dims:]
	news := false
	for d := range at {
		if most := max(left[d], right[d]); most != at[d] {
			at[d], news = most, true
		}
	}
	return news
}

// changed tells the rows a slot stands in that it has other room.
func (s *slot) changed() {
	for _, at := range s.rows {
		at.row.leaf(at.place)
		for node := (at.row.leaves + at.place) / 2; node > 0 && at.row.join(node); node /= 2 {
		}
	}
}

// close and open take a slot out of use and back.
func (s *slot) close() { s.closed = true; s.changed() }
func (s *slot) open()  { s.closed = false; s.changed() }

// has says whether a slot stands in the row.
func (r *row) has(s *slot) bool { return slices.Contains(r.slots, s) }
