package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// consolidate finds nodes that are not needed, or cost more than what their pods need. Rivals are nodes that may not go
// yet, but soon: the room for their pods is spoken for.
func consolidate(d *decision, candidates, rivals []*candidate) *consolidation {
	c := &consolidation{f: d.simulationOf(), book: d.book, scores: newBalance(d.in.Snapshot, d.judge.pools, d.rates), spotToSpot: d.in.SpotToSpot,
		average: averageOf(d.in.Snapshot, d.rates), kept: map[*candidate]*model.Verdict{}, gone: map[*candidate]bool{}}
	all := slices.Concat(candidates, rivals)
	slices.SortFunc(all, bySavings)
	c.f.settleHere()
	for _, one := range all {
		c.remove(one)
	}
	c.rehearse()
	if c.dismiss(shrinking(&d.in)) {
		return c
	}
	order := slices.DeleteFunc(all, func(one *candidate) bool { return one.soon })
	c.removed = len(c.commands)
	c.gather(order)
	for _, one := range order {
		c.exchange(one)
	}
	return c
}

// bySavings orders candidates by what they cost for what taking them away costs, the most first.
func bySavings(a, b *candidate) int {
	return cmp.Or(-cmp.Compare(a.price/a.cost, b.price/b.cost), cmp.Compare(len(a.pods), len(b.pods)), strings.Compare(a.node.Key(), b.node.Key()))
}

// remove takes a node away whose pods fit on others.
func (c *consolidation) remove(one *candidate) {
	if !c.open(one) {
		return
	}
	if it := stuck(c.f, c.f.Simulated[one.node.Key()]); it != nil {
		c.kept[one] = noRoomFor(it)
		return
	}
	found, kept := c.f.Relocate([]*model.Node{one.node}, Purchase{})
	if found == nil {
		c.kept[one] = kept
		return
	}
	c.decide([]*candidate{one}, found, one.price, fitsElsewhere(one, found))
	c.removals = append(c.removals, one)
}

func fitsElsewhere(one *candidate, found *move) string {
	why := fmt.Sprintf("its %d pods fit on other nodes", found.pods)
	if one.known {
		why += fmt.Sprintf(", which saves $%.4f an hour", one.price)
	}
	return why
}

// dismiss drops the commands that it is too early for, and says whether there are any. What room they need stays theirs;
// to buy for what finds none beside it would be to buy what is not needed when they have gone. Where the cluster has just
// shrunk, and a good part of the commands is early, the others wait as well: once all nodes that lost pods may be chosen
// from, fewer pods move for more.
func (c *consolidation) dismiss(shrinking bool) (early bool) {
	commands, soon := c.commands, 0
	for _, one := range c.removals {
		if one.soon {
			soon++
		}
	}
	c.commands = nil
	for i, one := range c.removals {
		switch {
		case one.soon:
		case shrinking && soon > 0 && soon*shrinkingPart >= len(c.removals):
			c.giveUp(one, "nodes that have just lost pods may be better ones to take away, when they have been quiet for consolidateAfter")
		default:
			c.commands = append(c.commands, commands[i])
		}
	}
	return soon > 0
}

// giveUp has a candidate stay for which there was a command.
func (c *consolidation) giveUp(one *candidate, why string) {
	delete(c.gone, one)
	if !one.soon {
		c.book.take(one.node.Pool, underutilized, -1)
	}
	c.kept[one] = stays(model.CauseQuiet, "%s", why)
}

const crowdedOut = "its pods fit on other nodes, but might not beside those of other nodes that go at the same time"

func nodesOf(candidates []*candidate) []*model.Node {
	nodes := make([]*model.Node, len(candidates))
	for i, one := range candidates {
		nodes[i] = one.node
	}
	return nodes
}

// rehearse gives up the commands found so far that only work out if the kube-scheduler does as it was planned.
func (c *consolidation) rehearse() {
	if len(c.removals) < 2 {
		return
	}
	// The first goes in any case: alone it does no worse than if it were decided by itself.
	removals, commands := c.removals, c.commands
	nodes := nodesOf(removals)
	c.f.revert()
	passes := 1 + sort.Search(len(nodes)-1, func(k int) bool { return !c.f.rehearse(nodes[:k+2]) })
	c.removals, c.commands = nil, nil
	for i, one := range removals {
		if found, _ := c.f.Relocate(nodes[i:i+1], Purchase{}); found != nil && i < passes {
			c.f.keep(found)
			c.removals, c.commands = append(c.removals, one), append(c.commands, commands[i])
			continue
		}
		c.crowded = true
		c.giveUp(one, crowdedOut)
	}
}

// exchange replaces a node by a cheaper one.
func (c *consolidation) exchange(one *candidate) {
	before := c.kept[one]
	switch {
	case c.gone[one]:
	case len(c.commands)-c.removed >= replacementsMost:
		c.kept[one] = stays(model.CauseQuiet, "%d other replacements are decided first", replacementsMost)
	case before.Cause != model.CauseRoom && before.Cause != model.CauseBuffer || !c.open(one):
	case !one.known:
		c.kept[one] = stays(model.CausePrice, "%s, and what it costs is not known", before.Message)
	default:
		c.kept[one] = c.replace(one, before.Message)
	}
}

// replace replaces a node that stays for want of room, or says why not.
func (c *consolidation) replace(one *candidate, wants string) *model.Verdict {
	if kept := saveless(c.f, c.f.Simulated[one.node.Key()], one.price); kept != nil {
		kept.Message = wants + ", and " + kept.Message
		return kept
	}
	sources := []*candidate{one}
	found, kept := c.f.Relocate(nodesOf(sources), Purchase{Most: 1, terms: c.termsFor(sources)})
	switch {
	case found == nil && kept.Cause == model.CausePrice:
		kept.Message = wants + ", and " + kept.Message
		return kept
	case found == nil:
		return kept
	case len(found.Claims) == 0 && c.crowded:
		return stays(model.CauseQuiet, crowdedOut)
	}
	saves := one.price - found.price
	if kept := c.unworthy(sources, found, saves); kept != nil {
		return kept
	}
	why := fitsElsewhere(one, found)
	if len(found.Claims) > 0 {
		claim := &found.Claims[0]
		why = fmt.Sprintf("%s %s at $%.4f an hour takes its pods for $%.4f an hour less", claim.InstanceTypes[0], claim.CapacityType, claim.PricePerHour, saves)
	}
	c.decide(sources, found, saves, why)
	return nil
}

// averageOf is what the nodes of NodePools cost together, for each unit of what evicting all their pods costs.
func averageOf(snapshot *model.Snapshot, rates *rates) float64 {
	price, cost := 0.0, 0.0
	for _, n := range snapshot.Nodes {
		if p, known := rates.of(n); known && n.Managed() {
			price += p
			cost += lifecycle.DisruptionCost(n) - 1
		}
	}
	return price / max(cost, 1)
}
