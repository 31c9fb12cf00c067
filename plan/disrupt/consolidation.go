package disrupt

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// SpotChoice is how many cheaper instance types there have to be for spot to replace spot, and how many the launch may
// then choose from: a node that came out of fewer would be replaced again and again.
const SpotChoice = 15

const underutilized = karpv1.DisruptionReasonUnderutilized

// replacementsMost bounds the commands of one evaluation that launch something: their claims are written into a history.
// What is left is for the next evaluation, which follows at once.
const replacementsMost = 100

// consolidation is the search for commands that save money by moving pods.
type consolidation struct {
	f          *Simulation
	book       *budgets
	scores     *balance
	spotToSpot bool

	commands []model.Command
	// removals are the sources of the commands, as long as each is of one node that needs no replacement.
	removals []*candidate
	// removed is how many commands launch nothing; they are the first.
	removed int
	// crowded says that some were given up, as their pods might find no room.
	crowded bool
	// average is what the cluster costs, in dollars per hour, for each unit of what evicting its pods costs.
	average float64
	// kept says what keeps the candidates that were looked at, gone which of them are in a command.
	kept map[*candidate]*model.Verdict
	gone map[*candidate]bool
}

// open says whether a candidate may go as far as budgets, its score and commands that were found before have a say. Not
// even its whole price may be worth disrupting it.
func (c *consolidation) open(one *candidate) bool {
	if c.gone[one] {
		return false
	}
	kept := c.f.Simulated[one.node.Key()].expects()
	if kept == nil && c.book.left(one.node.Pool, underutilized) == 0 {
		kept = c.book.refusal(one, underutilized)
	}
	if demurs := c.scores.demurs([]*candidate{one}, one.price); kept == nil && demurs != "" {
		kept = stays(model.CausePolicy, "%s", demurs)
	}
	if kept != nil {
		c.kept[one] = kept
	}
	return kept == nil
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

// unworthy says why what replacements save does not justify to take nodes away; nil where it does.
func (c *consolidation) unworthy(sources []*candidate, found *move, saves float64) *model.Verdict {
	if !c.worth(sources, saves) {
		return stays(model.CausePrice, "a replacement would save $%.4f an hour, which is too little for moving %d pods", saves, found.pods)
	}
	if demurs := c.scores.demurs(sources, saves); demurs != "" {
		return stays(model.CausePolicy, "%s", demurs)
	}
	return nil
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
	c.f.keep(found)
	command := model.Command{Reason: underutilized, Replacements: found.Claims, Moves: found.pods, SavesPerHour: saves, Why: why + c.scores.praise(sources, saves)}
	for _, source := range sources {
		c.gone[source] = true
		if !source.soon {
			c.book.take(source.node.Pool, underutilized, 1)
		}
		command.Nodes = append(command.Nodes, source.node.Key())
	}
	c.commands = append(c.commands, command)
}
