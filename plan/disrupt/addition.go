package disrupt

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
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
	claims []model.Claim
	// saves is in dollars per hour, worth is that without what it takes for what is moved.
	saves, worth float64
}

// addForSmallPods adds nodes to those that need no replacement, which are all commands there are so far.
func addForSmallPods(c *consolidation, order []*candidate) {
	removals := c.removals
	if len(removals) < togetherLeast || len(removals) >= togetherMost {
		return
	}
	c.f.revert()
	best := bestAddition(c, removals, extraCandidates(c, order, togetherMost-len(removals)))
	planAgain(c, removals)
	if best == nil {
		return
	}
	nodes := allNodes(best.extras)
	found, _, _ := c.f.Relocate(nodes, Purchase{Most: anyNumber})
	if found == nil {
		return
	}
	all, moves, saves := c.commands, found.pods, best.saves
	found.Claims = best.claims
	c.commands = nil
	c.decide(best.extras, found, 0, "")
	command := &c.commands[0]
	command.Nodes = nil
	var alone []model.Command
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

// underWay is how many nodes the largest replacement takes away that has launched something for the pods of its nodes,
// and until when that is waited for. As long as many move, a simulation sees only how their pods might fit best, and
// takes room for spare that the kube-scheduler will not leave.
func underWay(snapshot *model.Snapshot) (most int, until time.Time) {
	moving, launched := map[string]int{}, map[string]time.Time{}
	for _, n := range snapshot.Nodes {
		switch {
		case n.Replacement == "":
		case !n.Leaving():
			launched[n.Replacement] = model.Later(launched[n.Replacement], n.Created)
		case slices.ContainsFunc(n.Pods, (*model.Pod).Reschedulable):
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

func allNodes(candidates []*candidate) []*model.Node {
	nodes := make([]*model.Node, len(candidates))
	for i, one := range candidates {
		nodes[i] = one.node
	}
	return nodes
}

// planAgain takes the nodes away again after a revert.
func planAgain(c *consolidation, removals []*candidate) {
	for _, one := range removals {
		if found, _, _ := c.f.Relocate([]*model.Node{one.node}, Purchase{}); found != nil {
			c.f.keep(found)
		}
	}
}

// extraCandidates are the nodes that might go besides, the best first.
func extraCandidates(c *consolidation, order []*candidate, most int) []*candidate {
	taken := map[string]int{}
	var extras []*candidate
	for _, one := range order {
		if len(extras) == most {
			break
		}
		_, expected := c.f.expects(one.node)
		if c.gone[one] || !one.known || expected || !wanting(c, one) || c.book.waits(one.node.Pool) || c.book.left(one.node.Pool, underutilized) <= taken[one.node.Pool] {
			continue
		}
		taken[one.node.Pool]++
		extras = append(extras, one)
	}
	return extras
}

// wanting says that a candidate stays only for want of room: its own pods found none, it takes those of others, or it was
// crowded out.
func wanting(c *consolidation, one *candidate) bool {
	cause := c.verdicts[one].Cause
	return cause == model.CauseRoom || cause == model.CauseNominated || cause == model.CauseQuiet
}

// bestAddition tries more and more extras, and then numbers near the best.
func bestAddition(c *consolidation, removals, extras []*candidate) *addition {
	var best *addition
	tried := map[int]bool{0: true}
	try := func(n int) {
		if n = min(max(n, 0), len(extras)); tried[n] {
			return
		}
		tried[n] = true
		if found := withExtras(c, removals, extras[:n]); found != nil && (best == nil || found.worth > best.worth*(1+1e-9)) {
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

// withExtras says what becomes of it when some extras go beside the removals; nil where that is not worth it.
func withExtras(c *consolidation, removals, extras []*candidate) *addition {
	defer c.f.Rollback()
	left := smallLeft(c.f, allNodes(slices.Concat(removals, extras)))
	if len(left) == 0 {
		return nil
	}
	price, cost := 0.0, 0.0
	for _, one := range extras {
		price += one.price
		cost += one.cost - 1
	}
	claims := buySmall(c.f, left, price, c.termsFor(extras))
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
// trial is the one of that order.
func smallLeft(f *Simulation, nodes []*model.Node) []*model.Pod {
	var most []*model.Pod
	worst := 0
	for order := range rehearsals {
		var left []*model.Pod
		for m := range f.unplacedMovers(nodes, nil, order) {
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
		for range f.unplacedMovers(nodes, nil, worst) {
			continue
		}
	}
	return most
}

// buySmall buys, in the trial that was rehearsed, for the pods that are left; nil where what the launches may come to is
// not cheaper than a price, or pods could not be placed.
func buySmall(f *Simulation, left []*model.Pod, price float64, on *terms) []model.Claim {
	d := f.Distribution
	podGroups := f.copies(left)
	d.PodGroups, d.Placements = podGroups, nil
	f.bar(false)
	d.BuysNothing = false
	for _, it := range place.InOrder(podGroups, false) {
		d.Place(it)
	}
	if len(d.Placements) > 0 || slices.ContainsFunc(podGroups, func(it *place.PodGroup) bool { return len(it.Pods) > 0 }) || len(d.Chunks) == 0 {
		return nil
	}
	planned := place.Buy(d.Market, nil, d.Chunks)
	for place.ChunkAgain(d, podGroups) {
		planned = place.Buy(d.Market, planned, d.Chunks)
	}
	if len(planned) == 0 || slices.ContainsFunc(podGroups, func(it *place.PodGroup) bool { return len(it.Pods) > 0 }) {
		return nil
	}
	slices.SortStableFunc(planned, func(a, b *place.PlannedNode) int { return cmp.Compare(a.Machine, b.Machine) })
	bought := 0.0
	for _, b := range planned {
		bought += d.Market.PriceIn(b.Machine, b.Zones)
	}
	// Each launch may come to something dearer than planned, but all together still save something.
	spare := (price - bought) / float64(len(planned))
	if spare <= 0 || math.IsNaN(spare) {
		return nil
	}
	var claims []model.Claim
	for _, b := range planned {
		limit := *on
		limit.below = d.Market.PriceIn(b.Machine, b.Zones) + spare
		claim, why := replacementClaim(f, b, &limit)
		if why != "" {
			return nil
		}
		claims = append(claims, claim)
	}
	return claims
}
