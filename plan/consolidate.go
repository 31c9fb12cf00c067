package plan

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// SpotChoice is how many cheaper instance types there have to be for spot to replace spot, and how many the launch may
// then choose from: a node that came out of fewer would be replaced again and again.
const SpotChoice = 15

const underutilized = karpv1.DisruptionReasonUnderutilized

// replacementsMost bounds the commands of one evaluation that launch something: their claims are written into a history.
// What is left is for the next evaluation, which follows at once.
const replacementsMost = 100

// scorer weighs what commands save against what they disrupt, where NodePools want that.
type scorer interface {
	// approves says whether taking some nodes away is worth it when it saves so much an hour, and why not.
	approves(sources []*candidate, saves float64) (ok bool, why string)
	// hopeless says that not even the whole price of a node is worth disrupting it.
	hopeless(c *candidate) (why string, hopeless bool)
}

// consolidation is the search for commands that save money by moving pods.
type consolidation struct {
	f          *field
	book       *budgets
	scores     scorer
	spotToSpot bool

	commands []Command
	// removals are the sources of the commands, as long as each is of one node that needs no replacement.
	removals []*candidate
	// removed is how many commands launch nothing; they are the first.
	removed int
	// crowded says that some were given up, as their pods might find no room.
	crowded bool
	// average is what the cluster costs, in dollars per hour, for each unit of what evicting its pods costs.
	average  float64
	verdicts map[*candidate]Verdict
	gone     map[*candidate]bool
}

// consolidate finds nodes that are not needed, or cost more than what their pods need. Of every candidate that is in no
// command it says why. Rivals are nodes that may not go yet, but soon: the room for their pods is spoken for.
func consolidate(f *field, in *Input, candidates, rivals []*candidate, book *budgets, scores scorer) ([]Command, []Verdict) {
	c := &consolidation{f: f, book: book, scores: scores, spotToSpot: in.SpotToSpot, verdicts: map[*candidate]Verdict{}, gone: map[*candidate]bool{}}
	if moving, until := underWay(in.Snapshot); moving > mostTogether {
		why := fmt.Sprintf("the pods of %d nodes are about to move, and where they will go is not known yet", moving)
		for _, one := range candidates {
			c.verdicts[one] = Verdict{Node: one.node.Key(), Reason: underutilized, Cause: CauseQuiet, Message: why, Until: until}
		}
		return nil, c.told(candidates)
	}
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
	c.add(order)
	c.removed = len(c.commands)
	c.gather(order)
	for _, one := range order {
		c.exchange(one)
	}
	return c.commands, c.told(candidates)
}

// told are the verdicts on the candidates that stay.
func (c *consolidation) told(candidates []*candidate) []Verdict {
	var verdicts []Verdict
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

func (c *consolidation) keep(one *candidate, cause Cause, why string) {
	c.verdicts[one] = Verdict{Node: one.node.Key(), Reason: underutilized, Cause: cause, Message: why}
}

// open says whether a candidate may go as far as budgets, its score and commands that were found before have a say.
func (c *consolidation) open(one *candidate) bool {
	if c.gone[one] {
		return false
	}
	if pod, expected := c.f.expects(one.node); expected {
		c.keep(one, CauseNominated, fmt.Sprintf("pod %s is to come to it", pod.Key()))
		return false
	}
	if c.book.left(one.node.Pool, underutilized) == 0 {
		cause, why := c.book.refusal(one.node.Pool, underutilized)
		c.keep(one, cause, why)
		return false
	}
	if why, hopeless := c.scores.hopeless(one); hopeless {
		c.keep(one, CausePolicy, why)
		return false
	}
	return true
}

// remove takes a node away whose pods fit on others.
func (c *consolidation) remove(one *candidate) {
	if !c.open(one) {
		return
	}
	if pod, of := c.f.stuck(c.f.stands[one.node.Key()]); pod != nil {
		why, cause := noRoomFor(&item{pods: []*Pod{pod}, refusal: of.refusal})
		c.keep(one, cause, why)
		return
	}
	approved, demur := c.scores.approves([]*candidate{one}, one.price)
	found, why, cause := c.f.relocate([]*Node{one.node}, purchase{})
	if found == nil {
		c.keep(one, cause, why)
		return
	}
	if !approved {
		c.keep(one, CausePolicy, demur)
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
	nodes := make([]*Node, len(removals))
	for i, one := range removals {
		nodes[i] = one.node
	}
	c.f.revert()
	passes := 1 + sort.Search(len(nodes)-1, func(k int) bool { return !c.f.rehearse(nodes[:k+2]) })
	c.removals, c.commands = nil, nil
	for i, one := range removals {
		found, _, _ := c.f.relocate(nodes[i:i+1], purchase{})
		if found != nil && i < passes && c.f.keep(found) {
			c.removals, c.commands = append(c.removals, one), append(c.commands, commands[i])
			continue
		}
		c.crowded = true
		delete(c.gone, one)
		if !one.soon {
			c.book.take(one.node.Pool, underutilized, -1)
		}
		c.keep(one, CauseQuiet, crowdedOut)
	}
}

// exchange replaces a node by a cheaper one.
func (c *consolidation) exchange(one *candidate) {
	if c.gone[one] {
		return
	}
	before := c.verdicts[one]
	if len(c.commands)-c.removed >= replacementsMost {
		c.keep(one, CauseQuiet, fmt.Sprintf("%d other replacements are decided first", replacementsMost))
		return
	}
	if before.Cause != CauseRoom && before.Cause != CauseBuffer || !c.open(one) {
		return
	}
	if !one.known {
		c.keep(one, CausePrice, before.Message+", and what it costs is not known")
		return
	}
	if why, cause, saveless := c.f.saveless(c.f.stands[one.node.Key()], one.price); saveless {
		c.keep(one, cause, before.Message+", and "+why)
		return
	}
	found, why, cause := c.f.relocate([]*Node{one.node}, purchase{most: 1, terms: c.termsFor([]*candidate{one})})
	if found == nil {
		if cause == CausePrice {
			why = before.Message + ", and " + why
		}
		c.keep(one, cause, why)
		return
	}
	if len(found.claims) == 0 && c.crowded {
		c.keep(one, CauseQuiet, crowdedOut)
		return
	}
	saves := one.price - found.price
	if why, cause := c.unworthy([]*candidate{one}, found, saves); why != "" {
		c.keep(one, cause, why)
		return
	}
	if len(found.claims) == 0 {
		c.decide([]*candidate{one}, found, one.price, fitsElsewhere(one, found))
		return
	}
	claim := &found.claims[0]
	c.decide([]*candidate{one}, found, saves, fmt.Sprintf("%s %s at $%.4f an hour takes its pods for $%.4f an hour less",
		claim.InstanceTypes[0], claim.CapacityType, claim.PricePerHour, saves))
}

// averageOf is what the nodes of NodePools cost together, for each unit of what evicting all their pods costs.
func averageOf(in *Input) float64 {
	rates, price, cost := newRates(in.Pools), 0.0, 0.0
	for _, n := range in.Snapshot.Nodes {
		if p, known := rates.of(n); known && n.Managed() {
			price += p
			cost += disruptionCost(n) - 1
		}
	}
	return price / max(cost, 1)
}

// A replacement is worth it when it saves at least leastPart of what it replaces, or for each pod that it moves at least
// leastWorth of what the cluster costs for each of its pods.
const (
	leastPart  = 0.2
	leastWorth = 0.25
)

// worth says whether a saving is more than next to nothing for what a replacement moves.
func (c *consolidation) worth(sources []*candidate, saves float64) bool {
	price, cost := measure(sources)
	return saves > 0 && (saves >= leastPart*price || saves >= leastWorth*c.average*cost)
}

// measure is what some nodes cost, in dollars per hour, and what evicting their pods does.
func measure(sources []*candidate) (price, cost float64) {
	for _, source := range sources {
		cost += source.cost - 1
		price += source.price
	}
	return price, cost
}

// unworthy says why what replacements save does not justify to take nodes away.
func (c *consolidation) unworthy(sources []*candidate, found *move, saves float64) (why string, cause Cause) {
	if !c.worth(sources, saves) {
		return fmt.Sprintf("a replacement would save $%.4f an hour, which is too little for moving %d pods", saves, found.pods), CausePrice
	}
	if ok, why := c.scores.approves(sources, saves); !ok {
		return why, CausePolicy
	}
	return "", ""
}

// termsFor are what a claim has to meet that replaces some nodes.
func (c *consolidation) termsFor(sources []*candidate) *terms {
	t := &terms{sources: sources}
	spot := true
	for _, source := range sources {
		t.below += source.price
		spot = spot && source.node.CapacityType == karpv1.CapacityTypeSpot
	}
	if spot {
		t.noSpot = !c.spotToSpot
		if len(sources) == 1 {
			t.choice = SpotChoice
		}
	}
	return t
}

// decide makes a command of a move.
func (c *consolidation) decide(sources []*candidate, found *move, saves float64, why string) {
	if !c.f.keep(found) {
		return
	}
	command := Command{Reason: underutilized, Replacements: found.claims, Moves: found.pods, SavesPerHour: saves, Why: why}
	for _, source := range sources {
		c.gone[source] = true
		if !source.soon {
			c.book.take(source.node.Pool, underutilized, 1)
		}
		command.Nodes = append(command.Nodes, source.node.Key())
	}
	c.commands = append(c.commands, command)
}
