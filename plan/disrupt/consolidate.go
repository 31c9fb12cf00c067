package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
)

// consolidate finds nodes that are not needed, or cost more than what their pods need. Of every candidate that is in no
// command it says why. Rivals are nodes that may not go yet, but soon: the room for their pods is spoken for.
func consolidate(f *Simulation, in *model.Input, candidates, rivals []*candidate, book *budgets, scores scorer) ([]model.Command, []model.Verdict) {
	c := &consolidation{f: f, book: book, scores: scores, spotToSpot: in.SpotToSpot, verdicts: map[*candidate]model.Verdict{}, gone: map[*candidate]bool{}}
	all := slices.Concat(candidates, rivals)
	slices.SortFunc(all, bySavings)
	f.settleHere()
	c.average = averageOf(in)
	for _, one := range all {
		c.remove(one)
	}
	c.rehearse()
	if c.dismiss(shrinking(in)) {
		return c.commands, c.told(candidates)
	}
	order := slices.DeleteFunc(all, func(one *candidate) bool { return one.soon })
	c.removed = len(c.commands)
	c.gather(order)
	for _, one := range order {
		c.exchange(one)
	}
	return c.commands, c.told(candidates)
}

// told are the verdicts on the candidates that stay.
func (c *consolidation) told(candidates []*candidate) []model.Verdict {
	var verdicts []model.Verdict
	for _, one := range candidates {
		if !c.gone[one] {
			verdicts = append(verdicts, c.verdicts[one])
		}
	}
	return verdicts
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
	if pod, of := stuck(c.f, c.f.Simulated[one.node.Key()]); pod != nil {
		why, cause := noRoomFor(&place.PodGroup{Pods: []*model.Pod{pod}, Refusal: of.Refusal})
		c.keep(one, cause, why)
		return
	}
	approved, demur := c.scores.approves([]*candidate{one}, one.price)
	found, why, cause := c.f.Relocate([]*model.Node{one.node}, Purchase{})
	if found == nil {
		c.keep(one, cause, why)
		return
	}
	if !approved {
		c.keep(one, model.CausePolicy, demur)
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
	commands := c.commands[:0]
	soon := 0
	for i, one := range c.removals {
		if one.soon {
			soon++
			continue
		}
		commands = append(commands, c.commands[i])
	}
	c.commands = commands
	if shrinking && soon*shrinkingPart >= len(c.removals) && soon > 0 {
		c.wait()
	}
	return soon > 0
}

const crowdedOut = "its pods fit on other nodes, but might not beside those of other nodes that go at the same time"

// rehearse gives up the commands found so far that only work out if the kube-scheduler does as it was planned.
func (c *consolidation) rehearse() {
	if len(c.removals) < 2 {
		return
	}
	// The first goes in any case: alone it does no worse than if it were decided by itself.
	removals, commands := c.removals, c.commands
	nodes := make([]*model.Node, len(removals))
	for i, one := range removals {
		nodes[i] = one.node
	}
	c.f.revert()
	passes := 1 + sort.Search(len(nodes)-1, func(k int) bool { return !c.f.rehearse(nodes[:k+2]) })
	c.removals, c.commands = nil, nil
	for i, one := range removals {
		found, _, _ := c.f.Relocate(nodes[i:i+1], Purchase{})
		if found != nil && i < passes && c.f.keep(found) {
			c.removals, c.commands = append(c.removals, one), append(c.commands, commands[i])
			continue
		}
		c.crowded = true
		delete(c.gone, one)
		if !one.soon {
			c.book.take(one.node.Pool, underutilized, -1)
		}
		c.keep(one, model.CauseQuiet, crowdedOut)
	}
}

// exchange replaces a node by a cheaper one.
func (c *consolidation) exchange(one *candidate) {
	if c.gone[one] {
		return
	}
	before := c.verdicts[one]
	if len(c.commands)-c.removed >= replacementsMost {
		c.keep(one, model.CauseQuiet, fmt.Sprintf("%d other replacements are decided first", replacementsMost))
		return
	}
	if before.Cause != model.CauseRoom && before.Cause != model.CauseBuffer || !c.open(one) {
		return
	}
	if !one.known {
		c.keep(one, model.CausePrice, before.Message+", and what it costs is not known")
		return
	}
	if why, cause, saveless := saveless(c.f, c.f.Simulated[one.node.Key()], one.price); saveless {
		c.keep(one, cause, before.Message+", and "+why)
		return
	}
	found, why, cause := c.f.Relocate([]*model.Node{one.node}, Purchase{Most: 1, terms: c.termsFor([]*candidate{one})})
	if found == nil {
		if cause == model.CausePrice {
			why = before.Message + ", and " + why
		}
		c.keep(one, cause, why)
		return
	}
	if len(found.Claims) == 0 && c.crowded {
		c.keep(one, model.CauseQuiet, crowdedOut)
		return
	}
	saves := one.price - found.price
	if why, cause := c.unworthy([]*candidate{one}, found, saves); why != "" {
		c.keep(one, cause, why)
		return
	}
	if len(found.Claims) == 0 {
		c.decide([]*candidate{one}, found, one.price, fitsElsewhere(one, found))
		return
	}
	claim := &found.Claims[0]
	c.decide([]*candidate{one}, found, saves, fmt.Sprintf("%s %s at $%.4f an hour takes its pods for $%.4f an hour less",
		claim.InstanceTypes[0], claim.CapacityType, claim.PricePerHour, saves))
}

// averageOf is what the nodes of NodePools cost together, for each unit of what evicting all their pods costs.
func averageOf(in *model.Input) float64 {
	rates, price, cost := newRates(in.Pools), 0.0, 0.0
	for _, n := range in.Snapshot.Nodes {
		if p, known := rates.of(n); known && n.Managed() {
			price += p
			cost += lifecycle.DisruptionCost(n) - 1
		}
	}
	return price / max(cost, 1)
}
