package plan

import (
	"slices"
	"strings"
)

// question is what was asked of a field when nothing had been decided yet: what becomes of the pods of some nodes.
type question struct {
	// nodes are their keys.
	nodes string
	buys  bool
}

// answer is what the field said, and what it looked at to say so.
type answer struct {
	nodes []*Node
	// terms are those of the purchase, without its sources.
	terms terms
	looks []look
	// why and cause say what keeps the nodes, unless found: then their pods need so many claims, at this price.
	found  bool
	why    string
	cause  Cause
	price  float64
	pods   int
	claims int
}

// answers are those to the questions that were asked of one field. Each holds for as long as nothing has changed that it
// depends on (change.go). A field gives the same answer to the same question, so that what is remembered is never more
// than work that is saved: nodes go by what a fork has found just now.
type answers struct {
	f       *field
	known   map[question]*answer
	growths *growths
	// recalled and asked count the questions that memory answered, and those that it did not.
	recalled, asked int
}

func newAnswers(f *field) *answers {
	return &answers{f: f, known: map[question]*answer{}, growths: &growths{}}
}

// pristine says that nothing has been decided that the field has not had from the beginning.
func (f *field) pristine() bool { return f.written == 0 && len(f.kept) == 0 }

// ask asks a fork what becomes of the pods of some nodes. Where the answer is known, and is a refusal or a move that does
// not serve, a fork is not needed; the move that is returned then has nothing but its size and price.
func (c *consolidation) ask(sources []*candidate, may purchase, serves func(*move) bool) (found *move, why string, cause Cause) {
	nodes := make([]*Node, len(sources))
	for i, source := range sources {
		nodes[i] = source.node
	}
	a := c.answers
	if a == nil || !c.f.pristine() || slices.ContainsFunc(nodes, func(n *Node) bool { return len(c.f.stands[n.Key()].guests) > 0 }) {
		return c.f.relocate(nodes, may)
	}
	asked := question{nodes: keysOf(nodes), buys: may.most > 0}
	if known := a.known[asked]; known != nil && slices.Equal(known.nodes, nodes) && known.terms.same(may.terms) {
		if !known.found {
			a.recalled++
			return nil, known.why, known.cause
		}
		if found = known.move(); !serves(found) {
			a.recalled++
			return found, "", ""
		}
	}
	a.asked++
	found, why, cause = c.f.relocate(nodes, may)
	fresh := &answer{nodes: nodes, looks: slices.Clone(c.f.looks), found: found != nil, why: why, cause: cause}
	if may.terms != nil {
		fresh.terms = terms{below: may.terms.below, noSpot: may.terms.noSpot, choice: may.terms.choice}
	}
	if found != nil {
		fresh.price, fresh.pods, fresh.claims = found.price, found.pods, len(found.claims)
	}
	a.known[asked] = fresh
	return found, why, cause
}

func keysOf(nodes []*Node) string {
	if len(nodes) == 1 {
		return nodes[0].Key()
	}
	keys := make([]string, len(nodes))
	for i, n := range nodes {
		keys[i] = n.Key()
	}
	return strings.Join(keys, "\x00")
}

// move is as much as is known of a move without a fork.
func (a *answer) move() *move {
	return &move{nodes: a.nodes, price: a.price, pods: a.pods, claims: make([]Claim, a.claims)}
}

// same says whether other terms, for the same sources, demand the same.
func (on *terms) same(other *terms) bool {
	if other == nil {
		return on.below == 0 && !on.noSpot && on.choice == 0
	}
	return on.below == other.below && on.noSpot == other.noSpot && on.choice == other.choice
}

// carry takes over those answers to an earlier field that hold for a later one, and says how the two differ.
func carry(last *answers, f *field) *answers {
	next := newAnswers(f)
	if last == nil {
		return next
	}
	change, comparable := compare(last.f, f)
	if !comparable {
		return next
	}
	for asked, known := range last.known {
		if looks, holds := change.holds(known); holds {
			known.looks = looks
			next.known[asked] = known
		}
	}
	next.growths = last.growths
	next.growths.renew(change)
	return next
}
