package disrupt

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// SpotChoice is how many cheaper instance types there have to be for spot to replace spot, and how many the launch may then
// choose from: a node launched from fewer would be replaced again and again.
const SpotChoice = 15

const underutilized = karpv1.DisruptionReasonUnderutilized

// maxReplacements limits the commands of one evaluation that launch something: their claims are recorded in a history. The
// rest is left to the next evaluation.
const maxReplacements = 100

// consolidation is the search for commands that save money by moving pods.
type consolidation struct {
	*decision
	f      *Simulation
	scores *balance
	// removals are the candidates to remove because their pods fit on other nodes.
	removals []*candidate
	// crowded says that some removals were given up because their pods might find no room.
	crowded bool
	// replaced is how many commands launch something.
	replaced int
}

// consolidate finds nodes that are not needed, or that cost more than what their pods need. It reserves room for the pods
// of nodes that may be removed soon.
func consolidate(d *decision, all []*candidate) {
	c := &consolidation{decision: d, f: d.simulationOf(), scores: newBalance(d.in.Snapshot, d.judge.pools, d.rates)}
	slices.SortFunc(all, bySavings)
	before := c.f.written
	for _, one := range all {
		c.remove(one)
	}
	c.rehearse(before)
	if c.dismiss() {
		return
	}
	staying := slices.DeleteFunc(all, func(one *candidate) bool { return one.soon || c.going[one.node.Key()] })
	c.gather(staying)
	for _, one := range staying {
		c.exchange(one)
	}
}

// bySavings orders candidates by price per cost of disruption, the highest first.
func bySavings(a, b *candidate) int {
	return cmp.Or(-cmp.Compare(a.price/a.cost, b.price/b.cost), cmp.Compare(len(a.pods), len(b.pods)), strings.Compare(a.node.Key(), b.node.Key()))
}

// mayGo says whether budgets, the candidate's score and the commands found so far allow disrupting a candidate. Even its
// whole price may not be worth the disruption.
func (c *consolidation) mayGo(one *candidate) bool {
	if c.going[one.node.Key()] {
		return false
	}
	kept := cmp.Or(c.f.expects(one.node), c.book.refusal(one.node.Pool, underutilized), c.scores.demurs([]*candidate{one}, one.price))
	one.kept = cmp.Or(kept, one.kept)
	return kept == nil
}

// remove removes a node if its pods fit on others.
func (c *consolidation) remove(one *candidate) {
	if !c.mayGo(one) {
		return
	}
	if pods := c.f.stuck(c.f.Simulated[one.node.Key()]); len(pods) > 0 {
		one.kept = noRoomFor(c.f.Distribution.Home[pods[0]], pods[0])
		return
	}
	if _, one.kept = c.f.Relocate([]*model.Node{one.node}, 0, nil); one.kept != nil {
		return
	}
	c.f.keep()
	c.removals = append(c.removals, one)
	if !one.soon {
		c.book.take(one.node.Pool, underutilized, 1)
	}
}

// giveUp takes back the removal of a candidate.
func (c *consolidation) giveUp(one *candidate, why string) {
	one.kept = stays(model.CauseQuiet, "%s", why)
	if !one.soon {
		c.book.take(one.node.Pool, underutilized, -1)
	}
}

const crowdedOut = "its pods fit on other nodes, but might not beside those of other nodes that go at the same time"

// rehearse gives up the removals that only work out if the kube-scheduler places pods as planned. before is how much was
// written in the journal before they were found.
func (c *consolidation) rehearse(before int) {
	if len(c.removals) < 2 {
		return
	}
	// The first is removed in any case: alone it does no worse than if it were decided by itself.
	removals, nodes := c.removals, nodesOf(c.removals)
	c.f.written = before
	clear(c.f.openings)
	c.f.Rollback()
	passes := 1 + sort.Search(len(nodes)-1, func(k int) bool { return !c.f.rehearse(nodes[:k+2]) })
	for i := range passes {
		if _, kept := c.f.Relocate(nodes[i:i+1], 0, nil); kept != nil {
			passes = i
			break
		}
		c.f.keep()
	}
	for _, one := range removals[passes:] {
		c.giveUp(one, crowdedOut)
	}
	c.removals, c.crowded = removals[:passes], passes < len(removals)
}

// dismiss drops the removals that are too early, and says whether there are any; it decides the others. The room that the
// early ones need stays reserved: buying for pods that find none beside it would buy what is not needed once the early
// nodes are gone. If the cluster has just shrunk, and a good part of the removals is early, the others wait as well: once
// all nodes that lost pods can be chosen from, moving fewer pods saves more.
func (c *consolidation) dismiss() (early bool) {
	soon := 0
	for _, one := range c.removals {
		if one.soon {
			soon++
		}
	}
	wait := soon > 0 && soon*shrinkingPart >= len(c.removals) && shrinking(&c.in)
	for _, one := range c.removals {
		switch {
		case one.soon:
		case wait:
			c.giveUp(one, "nodes that have just lost pods may be better ones to take away, when they have been quiet for consolidateAfter")
		default:
			c.weigh([]*candidate{one}, one.price) // it passes: mayGo has asked
			c.save([]*candidate{one}, nil)
		}
	}
	return soon > 0
}

// exchange replaces a node with a cheaper one.
func (c *consolidation) exchange(one *candidate) {
	before := one.kept
	switch {
	case c.going[one.node.Key()]:
	case c.replaced >= maxReplacements:
		one.kept = stays(model.CauseQuiet, "%d other replacements are decided first", maxReplacements)
	case before.Cause != model.CauseRoom && before.Cause != model.CauseBuffer || !c.mayGo(one):
	case !one.known:
		one.kept = stays(model.CausePrice, "%s, and what it costs is not known", before.Message)
	default:
		kept := c.f.saveless(c.f.Simulated[one.node.Key()], one.price)
		if kept == nil {
			kept = c.replace([]*candidate{one})
		}
		if kept != nil && (kept.Cause == model.CausePrice || kept.Cause == model.CauseRoom) {
			kept.Message = before.Message + ", and " + kept.Message
		}
		one.kept = kept
	}
}

// replace replaces some nodes with a cheaper one, or says why not.
func (c *consolidation) replace(sources []*candidate) *model.Verdict {
	on := c.termsFor(sources)
	claims, kept := c.f.Relocate(nodesOf(sources), 1, on)
	if kept != nil {
		return kept
	}
	if len(claims) == 0 && (c.crowded || len(sources) > 1) {
		return stays(model.CauseQuiet, crowdedOut)
	}
	saves := savings(sources, claims)
	if !c.scores.worth(sources, saves) {
		return stays(model.CausePrice, "a replacement would save %s an hour, which is too little for moving %d pods", cloud.Money(zoneOf(sources), saves), podsOf(sources))
	}
	if kept := c.weigh(sources, saves); kept != nil {
		return kept
	}
	c.f.keep()
	for _, source := range sources {
		c.book.take(source.node.Pool, underutilized, 1)
	}
	c.replaced++
	c.save(sources, claims)
	return nil
}

// weigh says why the policies of the NodePools do not approve of removing some nodes, nil if all do, and records what each
// found.
func (c *consolidation) weigh(sources []*candidate, saves float64) *model.Verdict {
	kept := c.scores.demurs(sources, saves)
	scores, known := c.scores.scores(sources, saves)
	seen := map[string]bool{}
	for _, source := range sources {
		if seen[source.node.Pool] {
			continue
		}
		seen[source.node.Pool] = true
		weighed := model.Weighed{NodePool: source.node.Pool, Policy: source.pool.Spec.Disruption.ConsolidationPolicy, Passes: true, Approved: kept == nil}
		if score, has := scores[source.node.Pool]; has && known {
			weighed.Score, weighed.Passes = &score, score >= 1.0/balancedK
		}
		c.found.Weighed = append(c.found.Weighed, weighed)
	}
	return kept
}

// save decides to remove some nodes, for a claim or because their pods fit on others.
func (c *consolidation) save(sources []*candidate, claims []model.Claim) {
	praise := ""
	if score, _ := c.scores.lowest(sources, savings(sources, claims)); !math.IsInf(score, 1) {
		praise = fmt.Sprintf("it scores %.2f where consolidationPolicy Balanced demands %.2f", score, 1.0/balancedK)
	}
	c.decide(underutilized, sources, claims, praise)
}

// termsFor returns the terms for a claim that replaces some nodes.
func (c *consolidation) termsFor(sources []*candidate) *terms {
	t := &terms{sources: sources}
	spot := true
	for _, source := range sources {
		t.below += source.price
		spot = spot && source.node.CapacityType == karpv1.CapacityTypeSpot
	}
	if spot {
		t.noSpot = !c.in.SpotToSpot
		if len(sources) == 1 {
			t.choice = SpotChoice
		}
	}
	return t
}

// zoneOf returns the zone of one of the nodes, which says what the currency is; empty if none is known.
func zoneOf(candidates []*candidate) string {
	for _, one := range candidates {
		if one.node.Zone != "" {
			return one.node.Zone
		}
	}
	return ""
}

func nodesOf(candidates []*candidate) []*model.Node {
	nodes := make([]*model.Node, len(candidates))
	for i, one := range candidates {
		nodes[i] = one.node
	}
	return nodes
}
