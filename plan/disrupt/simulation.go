package disrupt

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
)

// What becomes of the cluster when a node goes is asked thousands of times, so it must not cost a plan each. A simulation
// is one distribution (place/distribute.go) over the whole snapshot, in which everything that waits has its place:
// pending pods, the pods of nodes that are leaving, and the room that buffers keep free. A trial of it takes some nodes
// away, places their pods and nobody else's, and writes what it changes into a journal. Undoing that is as cheap as doing
// it.
//
// A trial says what Pack would say of the same snapshot with the nodes on their way out, but for this:
//
//   - Pods that move fill the nodes first that nobody wants to take away, then those that are the least likely to go.
//     Pack fills them by name. Where pods of several sizes just fit, one order may find room where another does not.
//   - Pods that wait keep the place the base gave them, as the room of buffers does, where Pack would place the largest
//     of all pods first. What they have is not what is offered to others.
//   - Pods are placed on the nodes that are there as long as the rules permit it, also where Pack would buy for the sake
//     of an even spread. A preference is held to as long as something could be bought that meets it, as in Pack.
//   - Nodes that are not initialized take nobody: a pod that would go there is a reason to wait.
//   - A domain in which nothing can be bought because of a limit counts as one in which something could: pods that are
//     spread stay where Pack would put them into other domains.
//
// Each of these keeps a node that might have gone, or finds another place; none moves a pod to where it may not be.

// Simulation is the base of all trials.
type Simulation struct {
	in model.Input
	// movable are the nodes that trials may take away.
	movable      map[*model.Node]bool
	Distribution *place.Distribution
	Simulated    map[string]*simulatedNode
	// inDomain are the simulated nodes by label and value, of the labels that groups are about.
	inDomain map[domainKey][]*simulatedNode
	// unready are the existing nodes that only pods that wait may use; barred says that they are closed now.
	unready []*place.ExistingNode
	barred  bool
	shelves [][len(market.CapacityTypes)][]int
	// tried is the trial that is written into the journal, if there is one. What is kept is before written.
	tried   *move
	written int
	purse   market.Purse
	// openings are the existing nodes with room for a pod of a pod group, as things are; nil where nobody has asked since
	// they changed.
	openings map[*place.PodGroup]*opening
	// kept are the moves since the mark that can still be taken back, with what they changed on simulated nodes.
	kept []undoState
}

// undoState is what a simulated node was like.
type undoState struct {
	st          *simulatedNode
	own, guests []*model.Pod
	gone        bool
}

type domainKey struct{ key, value string }

// simulatedNode is a node with the pods that have to go somewhere else when it goes.
type simulatedNode struct {
	node *model.Node
	slot *place.ExistingNode // nil where nothing can be put on the node
	own  []*model.Pod
	// guests are pods that were placed on the node: they wait, or come from nodes that go.
	guests []*model.Pod
	// Gone says that the node is taken away.
	Gone bool
	// leaving says that the node makes no domain any more.
	leaving bool
}

// Purchase is what a trial may buy.
type Purchase struct {
	// Most is how many claims may be bought: none, one, or any number.
	Most int
	// terms are those a single claim has to meet; nil if any will do.
	terms *terms
}

// anyNumber of claims is as many as are needed.
const anyNumber = 1 << 30

// move is what a trial found out: where the pods of some nodes go.
type move struct {
	nodes      []*model.Node
	Placements []model.Placement
	Claims     []model.Claim
	// price is what the claims cost, in dollars per hour.
	price float64
	// pods is how many running pods have to move.
	pods int
}

// opening is where one of a pod group's pods by itself has room, rules about other pods apart.
type opening struct {
	slots []*place.ExistingNode
	// many says that there are more.
	many bool
}

// terms are what a claim that replaces nodes has to meet to be worth it.
type terms struct {
	// below is the price, in dollars per hour, that whatever the launch comes to has to stay under.
	below float64
	// noSpot says that spot would replace spot only, which is not wanted.
	noSpot bool
	// choice is how many types a spot claim has to choose from, and then the most it may; zero for any number.
	choice int
	// sources are what is replaced. None is replaced by its like; and where one of several sources is of a type that would
	// do, it is better kept than replaced, so that only what is cheaper than it will do.
	sources []*candidate
}
