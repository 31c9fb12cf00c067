package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Where many nodes go at once, the small pods are what finds no room in the end: the large ones come first (Drain), and the
// kube-scheduler spreads both. A few machines for the small ones are then often cheaper than the nodes that would have to
// stay for their sake. So nodes are added to those that need no replacement for as long as the machines that this takes
// cost less than the nodes do. All of them go together, as the rehearsal has it, and what was bought takes nobody before
// the large pods have found room: it would be the emptiest of all nodes.

// Bounds of the search.
const (
	// togetherLeast is how many nodes have to go at once for the kube-scheduler to matter, togetherMost how many go together.
	togetherLeast = 8
	togetherMost  = 100
	// movesFor is how long after such a launch the pods are expected to have moved: machines boot in one minute or two.
	movesFor = 4 * time.Minute
	// rehearsals is in how many orders the large pods have to find room: one that does not costs a machine of its own.
	rehearsals = 2
)

// addition is nodes that go in addition to others, and what is bought for the small pods that find no room then.
type addition struct {
	extras []*candidate
	claims []Claim
	// saves is in dollars per hour, worth is that without what it takes for what is moved.
	saves, worth float64
}

// add adds nodes to those that need no replacement, which are all commands there are so far.
func (c *consolidation) add(order []*candidate) {
	removals := c.removals
	if len(removals) < togetherLeast || len(removals) >= togetherMost {
		return
	}
	c.f.revert()
	best := c.bestAddition(removals, c.extras(order, togetherMost-len(removals)))
	c.redo(removals)
	if best == nil {
		return
	}
	nodes := allNodes(best.extras)
	found, _, _ := c.f.relocate(nodes, purchase{most: anyNumber})
	if found == nil {
		return
	}
	all, moves, saves := c.commands, found.pods, best.saves
	found.claims = best.claims
	c.commands = nil
	c.decide(best.extras, found, 0, "")
	command := &c.commands[0]
	command.Nodes = nil
	var alone []Command
	for i := range all {
		if c.book.waits(removals[i].node.Pool) {
			// Nobody else is to wait for its pods.
			alone = append(alone, all[i])
			continue
		}
		command.Nodes = append(command.Nodes, all[i].Nodes...)
		moves, saves = moves+all[i].Moves, saves+all[i].SavesPerHour
	}
	for _, n := range nodes {
		command.Nodes = append(command.Nodes, n.Key())
	}
	command.Moves, command.SavesPerHour, command.Apart, command.Late = moves, saves, true, true
	command.Why = fmt.Sprintf("the pods of %d nodes fit on others but for small ones, which %d new nodes take for $%.4f an hour less in all",
		len(command.Nodes), len(best.claims), saves)
	c.commands = append(c.commands, alone...)
}

// underWay is how many nodes the largest replacement takes away that has launched something for the pods of its nodes, and
// until when that is waited for. As long as many move, a field sees only how their pods might fit best, and takes room for
// spare that the kube-scheduler will not leave.
func underWay(snapshot *Snapshot) (most int, until time.Time) {
	moving, launched := map[string]int{}, map[string]time.Time{}
	for _, n := range snapshot.Nodes {
		switch {
		case n.Replacement == "":
		case !n.leaving():
			launched[n.Replacement] = later(launched[n.Replacement], n.Created)
		case slices.ContainsFunc(n.Pods, (*Pod).Reschedulable):
			moving[n.Replacement]++
		}
	}
	for id, at := range launched {
		if end := at.Add(movesFor); moving[id] > most && snapshot.Time.Before(end) {
			most, until = moving[id], end
		}
	}
	return most, until
}

func allNodes(candidates []*candidate) []*Node {
	nodes := make([]*Node, len(candidates))
	for i, one := range candidates {
		nodes[i] = one.node
	}
	return nodes
}

// redo takes the nodes away again after a revert.
func (c *consolidation) redo(removals []*candidate) {
	for _, one := range removals {
		if found, _, _ := c.f.relocate([]*Node{one.node}, purchase{}); found != nil {
			c.f.keep(found)
		}
	}
}

// extras are the nodes that might go besides, the best first.
func (c *consolidation) extras(order []*candidate, most int) []*candidate {
	taken := map[string]int{}
	var extras []*candidate
	for _, one := range order {
		if len(extras) == most {
			break
		}
		_, expected := c.f.expects(one.node)
		if c.gone[one] || !one.known || expected || !c.wanting(one) || c.book.waits(one.node.Pool) || c.book.left(one.node.Pool, underutilized) <= taken[one.node.Pool] {
			continue
		}
		taken[one.node.Pool]++
		extras = append(extras, one)
	}
	return extras
}

// wanting says that a candidate stays only for want of room: its own pods found none, it takes those of others, or it was
// crowded out.
func (c *consolidation) wanting(one *candidate) bool {
	cause := c.verdicts[one].Cause
	return cause == CauseRoom || cause == CauseNominated || cause == CauseQuiet
}

// bestAddition tries more and more extras, and then numbers near the best.
func (c *consolidation) bestAddition(removals, extras []*candidate) *addition {
	var best *addition
	tried := map[int]bool{0: true}
	try := func(n int) {
		if n = min(max(n, 0), len(extras)); tried[n] {
			return
		}
		tried[n] = true
		if found := c.grown(removals, extras[:n]); found != nil && (best == nil || found.worth > best.worth*(1+1e-9)) {
			best = found
		}
	}
	for n := 1; n < 2*len(extras); n *= 2 {
		try(n)
	}
	for step := togetherMost / 4; best != nil && step > 0; step /= 2 {
		n := len(best.extras)
		try(n - step)
		try(n + step)
	}
	return best
}

// grown says what becomes of it when some extras go beside the removals; nil where that is not worth it.
func (c *consolidation) grown(removals, extras []*candidate) *addition {
	defer c.f.rollback()
	left := c.f.smallLeft(allNodes(slices.Concat(removals, extras)))
	if len(left) == 0 {
		return nil
	}
	price, cost := 0.0, 0.0
	for _, one := range extras {
		price += one.price
		cost += one.cost - 1
	}
	claims := c.f.buySmall(left, price, c.termsFor(extras))
	if claims == nil {
		return nil
	}
	found := &addition{extras: extras, claims: claims, saves: price}
	for i := range claims {
		found.saves -= claims[i].PricePerHour
	}
	found.worth = found.saves - leastWorth*c.average*cost
	if ok, _ := c.scores.approves(extras, found.saves); !ok || found.worth <= 0 {
		return nil
	}
	return found
}

// smallLeft are the small pods that find no room when nodes go, in the order in which the most do not; none where large
// pods find none either, or the room of buffers is lost: what is bought opens when the large pods have their places. The
// fork is the one of that order.
func (f *field) smallLeft(nodes []*Node) []*Pod {
	var most []*Pod
	worst := 0
	for order := range rehearsals {
		var left []*Pod
		for m := range f.homeless(nodes, nil, order) {
			if m.large || m.pod.Virtual {
				return nil
			}
			left = append(left, m.pod)
		}
		if len(left) > len(most) {
			most, worst = left, order
		}
	}
	if worst != rehearsals-1 {
		for range f.homeless(nodes, nil, worst) {
			continue
		}
	}
	return most
}

// buySmall buys, in the fork that was rehearsed, for the pods that are left; nil where what the launches may come to is not
// cheaper than a price, or pods could not be placed.
func (f *field) buySmall(left []*Pod, price float64, on *terms) []Claim {
	d := f.d
	items := f.copies(left)
	d.items, d.placements = items, nil
	f.bar(false)
	d.buysNothing = false
	for _, it := range inOrder(items, false) {
		d.place(it)
	}
	if len(d.placements) > 0 || slices.ContainsFunc(items, func(it *item) bool { return len(it.pods) > 0 }) || len(d.lots) == 0 {
		return nil
	}
	bins := d.m.buy(nil, d.lots)
	for d.again(items) {
		bins = d.m.buy(bins, d.lots)
	}
	if len(bins) == 0 || slices.ContainsFunc(items, func(it *item) bool { return len(it.pods) > 0 }) {
		return nil
	}
	slices.SortStableFunc(bins, func(a, b *bin) int { return cmp.Compare(a.machine, b.machine) })
	bought := 0.0
	for _, b := range bins {
		bought += d.m.priceIn(b.machine, b.zones)
	}
	// Each launch may come to something dearer than planned, but all together still save something.
	spare := (price - bought) / float64(len(bins))
	if spare <= 0 || math.IsNaN(spare) {
		return nil
	}
	var claims []Claim
	for _, b := range bins {
		limit := *on
		limit.below = d.m.priceIn(b.machine, b.zones) + spare
		claim, why := f.claimOf(b, &limit)
		if why != "" {
			return nil
		}
		claims = append(claims, claim)
	}
	return claims
}
