// Package plan decides, and does nothing else: a Snapshot of the cluster, the NodePools and what can be bought for them
// go in; a Plan comes out, with a reason for every pod it leaves. It does no I/O, reads no clock but Snapshot.Time, and
// gives the same answer to the same question.
//
// # How Pack works
//
// Pods that ask the same of a node are one Class (the Interner finds them when they enter the mirror). Those of a class
// that nothing else tells apart are one item, and all work is done per item: a pod that fits nowhere costs its item once.
// Everything that can be bought is a machine: an instance type of a NodePool with one capacity type. What an item accepts
// is a bitset of machines and a mask of zones; what it asks for is a vector of integers, as is what a machine has left
// when its DaemonSets run. From there:
//
//  1. Terms of topology spread and pod affinity become groups that count pods by the domains of a label, and each item
//     gets rules over groups (topology.go, rules.go). Preferences are rules that hold until they are given up, one by
//     one, in Karpenter's order (shape.go). Volumes narrow what a node may be (volume_needs.go).
//  2. Items are distributed (distribute.go): pods that were promised to a node go back to it (promised.go); others fill existing
//     nodes, initialized ones first, then claims in flight. Where rules are about zones or other labels, the pods of an item
//     choose their domains one by one, the cheapest where the rules leave a choice (domains.go, district.go). Pods that
//     have to share a node are bundled (bundle.go). What finds no room becomes lots that are to be bought, each for one
//     choice of domains.
//  3. NodePools are tried by weight, all pools of one weight together. A lot takes the best capacity type that it finds
//     there: reserved, spot, on-demand, in this order, and the next one for what it does not get. What is reserved is
//     bought first, then what must be on demand, and others fill what these leave (buy.go).
//  4. Lots that are alike to the market are one demand (demand.go). The leanest plan: what a piece of a demand is worth is
//     found by generating loads for a linear program over the whole batch (solve/program.go), and machines are filled by worth
//     per dollar (buyer.go). How many pods of a kind a node may have is a resource there, unless many more nodes than
//     that asks for are needed anyway (caps.go).
//  5. Where the kube-scheduler will not be told where each pod goes, the leanest plan is compared with fleets of alike
//     machines, by playing the kube-scheduler on each and counting what a second round would cost (solve/fleet.go, solve/rehearse.go).
//     The cheapest in the end wins.
//  6. Pods get their machines, those first that mind the company. What cannot be together is bought for again. At the end
//     the binding of all pods is played, and what could not be bound is given back (audit.go).
//  7. Machines of the same type become one launch group, with the alternatives that hold the content of each (claim.go).
//
// How near that comes to the least possible price is proven by LowerBound (bound.go) and held by tests.
//
// # Price and flexibility
//
// A claim lists its cheapest type first and then up to sixty that are large enough for every claim of its group, at
// rising prices. On-demand launches take the cheapest that has capacity, so choice costs nothing. Spot launches weigh
// price against the risk of interruption; what is dearer than the cheapest on-demand machine for the job is not listed,
// unless minValues needs it, or only spot will do. Machines with devices nobody asked for are listed only where there is
// nothing else.
//
// Moderate sizes win near-ties, and many pods that would depend on very few machines count as dearer, because a node is
// also a thing that fails.
//
// # Equal weights
//
// Among pools of one weight the cheapest machine wins, whichever pool it is of; among equally cheap ones the pool whose
// name comes first. The same input gives the same plan. (Karpenter opens the pool whose name comes last, whatever it
// costs.)
//
// # Reserved capacity
//
// A machine of a capacity reservation is a machine of its own, and the reservation is counted (reservation.go): over the
// whole batch, over all pools that may use it, and over claims in flight that were made for it. Where Karpenter, in its
// strict mode, leaves pods that find the reservation used up to a later round, the rest of a batch goes on to spot and
// on-demand in the same plan. Nothing is gained by waiting: the reservation is exactly as full a round later, and the pods
// would have waited. Who wants to wait for reserved capacity says so with a requirement on the capacity type.
//
// # Limits and priority
//
// A NodePool's limits are charged with the capacity of the machine that is planned, not with that of the largest that the
// launch may choose, as Karpenter does. That is exact, and safe: where larger alternatives could take the pool beyond a
// limit, the claim does not list them (claim.go). Nodes that are going count until they are gone, and a claim in flight
// counts as the largest machine it may still become.
//
// When a limit keeps pods out, everything is planned once more, by priority and with what the machines use up of the
// limits as their price (priority.go).
//
// # Room that is kept free
//
// What a CapacityBuffer asks for waits as virtual pods, behind all others (virtual.go). They are placed on room that
// nobody else wants, and bought for where there is none; where limits leave real pods out, they are planned apart. Nothing
// that a virtual pod fits on has to be bought again: as long as the room is there, each plan finds it. Nodes that hold it
// are not empty (headroom.go).
//
// # Static pools
//
// A NodePool with replicas keeps that many nodes, whatever the pods want (static.go). What it lacks is decided beside Pack
// and launched with it; what it has too many of goes with the empty nodes (disruption.go). Pods use its nodes as any other.
//
// # Who may go
//
// Disrupt judges every node of a NodePool for every reason (disrupt.go): first by what the node, its pods, their
// PodDisruptionBudgets and its pool say (candidate.go, pdb.go), then by the budgets of the pool, which count all commands of
// one evaluation beside what is leaving already (budgetbook.go), then by room and price. What keeps a node is a Verdict with
// a cause, a sentence and, where only time is in the way, its end; the earliest of these is when it is worth asking again.
// Reasons are asked in an order, and a node goes for the first that lets it: surplus of static pools, empty nodes (empty.go),
// expired and drifted ones (renew.go), underutilized ones. Drift and graceful expiry replace node by node, so that one that
// cannot go keeps nobody else; they do not wait for pods or their budgets where the drain has an end. While pods have just
// come that no plan was made for, nothing is found underutilized. Under the policy Balanced a saving is weighed against the
// pods that move (balance.go).
//
// # Consolidation
//
// Disrupt asks of thousands of nodes what becomes of the cluster without them. One distribution is made of all that waits,
// and each question is a fork of it that places the pods of the nodes in question and is taken back (field.go). First the
// nodes go whose pods fit on others, those first that cost the most for what evicting their pods costs; they are rehearsed
// together as the kube-scheduler would bind their pods, and those that only a plan could make fit are left (rush.go). Where
// many nodes go, more of them go for machines that are bought for the small pods which find no room then (addition.go).
// Then groups of nodes are replaced by one cheaper machine (group.go), then single ones (consolidate.go, purchase.go). What is
// kept of one question is spent for all that follow, so that all commands can be carried out at once. Pods are sent to the
// nodes that are the least likely to go, and a node that pods are sent to stays, so that nobody moves twice.
//
// Karpenter replaces a node whenever that is a cent cheaper. Here a replacement has to save a fifth of what it replaces, or,
// for each pod it moves, a quarter of what the cluster costs for each of its pods; it is never of the type and capacity type
// that it replaces. A node that needs no replacement may go for any saving. On a simulated day of forty Deployments that
// moved three fourths of the pods that Karpenter did, for a lower bill: what a small saving earns until demand changes again is
// worth less than the moves, and room that is left alone is room for who comes next.
//
// # Looking again
//
// A cluster is looked at after every change, and most of it is as it was. Each look begins anew all the same: most nodes of a
// cluster that is well packed need no fork, since one of their pods fits on no other node, or what their pods need at least
// costs as much as they do (opening.go). A look at 5,000 full nodes takes 0.4 s of one core, more than half of it to read the snapshot,
// which answers that are remembered would not save.
//
// # Devices
//
// Machines with devices are bought for pods that ask for a device, and for others only where a pool has nothing else to
// offer; not when the others are at their limit. Nodes with devices that exist, or are bought for others, take plain pods when
// nothing else does, after the pods that ask for devices. Bare metal is bought only where nothing else would do. All that
// may be launched follows one rule (launchable.go).
//
// # DaemonSets
//
// What a DaemonSet takes of a node is what its newest pod requests, or its template where none lives. It is charged on machines
// and zones in which it runs (daemons.go).
//
// # Reasons
//
// A pod that is left has one sentence for each pool: the fewest labels, zones, resources, limits or refusals that together
// leave no machine (obstacle.go, reasons.go), or the rule about other pods that no machine can meet.
//
// # Disagreement
//
// The kube-scheduler has the last word. A pod that it binds to none of the nodes that were made for it gets no more than
// two; then growing for it pauses, and the pod's reason says until when (growthpause.go).
//
// # Volumes
//
// A volumeBook answers what a pod's persistent volumes ask of its node (volume_needs.go): a choice of conditions on its
// labels, which joins the pod's own requirements, and how many volumes have to be attached (volume_attach.go), which every
// node counts like a resource. Pods of one Class whose volumes ask the same stay together, so that a StatefulSet over
// three zones is three items and not as many as it has pods. A claim that cannot be used is one sentence about the pod.
//
// # What is not planned for
//
// Pods that ask for devices by dynamic resource allocation are left with that reason rather than misplaced.
package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// MaxInstanceTypes is how many instance types one launch chooses from.
const MaxInstanceTypes = 60

// MinValuesPolicy says what becomes of a NodePool whose minValues cannot be met.
type MinValuesPolicy string

// The policies.
const (
	// MinValuesStrict launches nothing that leaves less choice than minValues demands.
	MinValuesStrict MinValuesPolicy = "Strict"
	// MinValuesBestEffort launches with the choice there is and marks the claim.
	MinValuesBestEffort MinValuesPolicy = "BestEffort"
)

// Input is everything Pack knows.
type Input struct {
	Snapshot *Snapshot
	// Pools are the NodePools that may be used, with what can be bought for each. Order does not matter.
	Pools []Pool
	// Unavailable are offerings that recently had no capacity, with the time until which they are left out.
	Unavailable map[cloud.OfferingKey]time.Time
	// MinValues is the policy for minValues; empty means MinValuesStrict.
	MinValues MinValuesPolicy
	// Preferences is the policy for preferences; empty means PreferencesRespect.
	Preferences PreferencePolicy
	// Nominates says that the kube-scheduler will be told where each pod is to go, and so follows the plan.
	Nominates bool
	// Growth is what was done so far for pods that still wait, where nodes came up for them. Disrupt does not read it.
	Growth map[types.UID]Growth
	// SpotToSpot says that Disrupt may replace spot nodes by cheaper spot nodes. Pack does not read it.
	SpotToSpot bool
	// Held are nodes that Disrupt leaves alone for a while, by Key. Pack does not read it.
	Held map[string]Hold
	// Settling are the NodePools in which Disrupt begins nothing, because pods that were moved are not Ready yet and the
	// pool wants them to be (annotation tenon.sh/wait-for-ready).
	Settling map[string]bool
}

// Hold keeps a node from being disrupted until a moment, whatever speaks for it.
type Hold struct {
	Until time.Time
	// Why is one sentence for people.
	Why string
}

// Pool is a NodePool and what can be launched for its node class.
type Pool struct {
	NodePool *karpv1.NodePool
	Types    []*cloud.InstanceType
	// Problem says why Types could not be had; empty if they could.
	Problem string
	// NodePrice is what a node costs beside its machine, in US dollars per hour: its root volume, and what else the operator
	// counts.
	NodePrice float64
	// Packing says what wins between plans of almost equal cost; empty means PackingSpread.
	Packing Packing
}

// Packing says what wins between plans of almost equal cost.
type Packing string

// The ways to pack.
const (
	// PackingSpread lets no node carry more than a third of a workload or of a batch, and no spot pool (instance type and
	// zone) more than a third of a workload, where that costs almost nothing.
	PackingSpread Packing = karpv1.PackingSpread
	// PackingCheapest takes the cheapest plan, however few nodes it depends on.
	PackingCheapest Packing = karpv1.PackingCheapest
)

// Plan is what Pack decided.
type Plan struct {
	// Claims are the nodes to create, alike ones next to each other.
	Claims []Claim
	// Placements are the pods that fit on nodes which exist or are on their way.
	Placements []Placement
	// Unplaced are the pods nothing could be done for.
	Unplaced []Unplaced
}

// PricePerHour is what the plan's claims cost, in US dollars, when each gets its cheapest offering.
func (p Plan) PricePerHour() float64 {
	sum := 0.0
	for i := range p.Claims {
		sum += p.Claims[i].PricePerHour
	}
	return sum
}

// Placement is a pod that fits on a node which exists or is on its way.
type Placement struct {
	Pod *Pod
	// Node is the Key of the Node.
	Node string
}

// Unplaced is a pod that stays without a node, and why.
type Unplaced struct {
	Pod *Pod
	// Reasons are shared between pods of one class: one for each NodePool, or a single one without NodePool when
	// there is no NodePool, or none could ever help. The pool that came nearest to serving the pod is first.
	Reasons []Reason
}

// Reason is why a NodePool cannot serve a pod.
type Reason struct {
	NodePool string
	Message  string
}

// Claim is one node to create.
type Claim struct {
	NodePool  string
	NodeClass string
	// CapacityType is the one to buy.
	CapacityType string
	// Reservation is the capacity reservation a reserved claim is launched into; empty for others.
	Reservation string
	// InstanceTypes may be launched, the cheapest first, MaxInstanceTypes at most.
	InstanceTypes []string
	// Zones may be launched into, ordered by name.
	Zones []string
	// Requirements are the NodeClaim's: the pool's, narrowed to the fields above.
	Requirements []karpv1.NodeSelectorRequirementWithMinValues
	// Requests are the sum of the pods and of the DaemonSets the cheapest type will run.
	Requests corev1.ResourceList
	// Labels are what the claim and its node carry beyond what the instance type and offering say.
	Labels map[string]string
	// Pods are the pods the node is for.
	Pods []types.UID
	// PricePerHour is the cheapest offering's, in US dollars.
	PricePerHour float64
	// Group is equal for claims that can be launched by one call.
	Group string
	// MinValuesRelaxed says that the pool's minValues could not be met.
	MinValuesRelaxed bool
}
