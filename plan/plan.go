// Package plan decides, and does nothing else: a Snapshot of the cluster, the NodePools and what can be bought for them
// go in; a Plan comes out, with a reason for every pod it leaves. It does no I/O, reads no clock but Snapshot.Time, and
// gives the same answer to the same question.
//
// # How Pack works
//
// Pods that ask the same of a node are one Class (the Interner finds them when they enter the mirror). Those of a class
// that nothing else tells apart are one pod group, and all work is done per pod group: a pod that fits nowhere costs its
// pod group once. Everything that can be bought is a machine: an instance type of a NodePool with one capacity type. What
// a pod group accepts is a bitset of machines and a mask of zones; what it asks for is a vector of integers, as is what a
// machine has left when its DaemonSets run. From there:
//
//  1. Terms of topology spread and pod affinity become groups that count pods by the domains of a label, and each pod
//     group gets rules over groups (rules/topology.go, rules/rules.go). Preferences are rules that hold until they are
//     given up, one by one, in Karpenter's order (place/shape.go). Volumes narrow what a node may be
//     (rules/volume_needs.go).
//  2. Pod groups are distributed (place/distribute.go): pods that were promised to a node go back to it
//     (place/promised.go); others fill existing nodes, initialized ones first, then claims in flight. Where rules are
//     about zones or other labels, the pods of a pod group choose their domains one by one, the cheapest where the rules
//     leave a choice (place/domains.go, market/zone_prices.go). Pods that have to share a node are bundled
//     (place/bundle.go). What finds no room becomes demand chunks that are to be bought, each for one choice of domains.
//  3. NodePools are tried by weight, all pools of one weight together. Reserved machines are bought first: they are paid
//     for. Then comes what must be on demand, so that others may fill what it leaves; who may use spot and on-demand takes
//     what is cheaper (place/buy.go).
//  4. Demand chunks that are alike to the market are one demand (place/demand.go), and demands are bought for together
//     (place/buyer.go, solve). Demands of nearly equal size share a row of a linear program, which finds out what a piece
//     of each is worth, and what a unit of a limit that is near (solve/rows.go, solve/program.go). Machines are filled by
//     worth per dollar with pieces of their real size (solve/guided.go). What comes of it is compared with first fit into
//     claims in flight and with fleets of one type; the cheapest is improved by taking machines out and buying anew, until
//     that has not helped for long, unless it has more than a hundred machines (solve/improve.go). How many pods of a kind a
//     node may have is a resource there, unless many more nodes than that asks for are needed anyway (place/caps.go).
//  5. Where the kube-scheduler will not be told where each pod goes, ways to buy are compared by what they cost when it
//     has placed the pods, counting a second round of machines (solve/rehearse.go); they may be 5 % dearer at most.
//  6. Pods get their machines, those first that mind which others are there. What cannot be together is bought for again.
//     At the end the binding of all pods is simulated, and what could not be bound is given back (place/audit.go).
//  7. Machines of the same type become one launch group, with the alternatives that hold the content of each
//     (place/claim.go).
//
// How near that comes to the least possible price is proven by LowerBound (place/bound.go) and held by tests.
//
// # Price and flexibility
//
// A claim lists its cheapest type first and then up to sixty that are large enough for every claim of its group, at
// rising prices. On-demand launches take the cheapest that has capacity, so choice costs nothing. Spot launches weigh
// price against the risk of interruption; what is dearer than the cheapest on-demand machine for the job is not listed,
// unless minValues needs it, or only spot will do. Machines with devices nobody asked for are listed only where there is
// nothing else.
//
// # What a plan costs
//
// A plan's price is that of its machines and of its nodes: Pool.NodePrice, the root volume and what else the operator counts.
// DaemonSets cost the room they take: what the newest pod of each requests, or its template where none lives, on the
// machines and in the zones in which it runs (market/daemons.go).
//
// With PackingSpread, which is the default, a plan in which some node carries more than a third of a workload's waiting pods,
// or of the batch, is planned once more under that bound, and the second plan wins if it costs at most 0.8 % more
// (solve.AlmostEqual). Where it costs more than that, the cheapest plan stands, however few nodes it depends on; bare pods and
// workloads of less than three count for the batch alone.
//
// A claim on spot then leaves out the spot pools (instance type and zone) that carry more than a third of one of its
// workloads, running pods included, where what remains costs almost the same. Where fewer than three pools do, those that
// are up to 1.5 % dearer count as well (place/spotpools.go). All others stay in the list, so that EC2 can take the pool with
// the most to spare: of nodes that are planned together more than a third of a workload may end in one pool all the same.
//
// Among pools of one weight the cheapest machine wins, whichever pool it is of; among equally cheap ones the pool whose
// name comes first. The same input gives the same plan.
//
// # Reserved capacity
//
// A machine of a capacity reservation is a machine of its own, and the reservation is counted (market/reservation.go):
// over the whole batch, over all pools that may use it, and over claims in flight that were made for it. Where Karpenter,
// in its strict mode, leaves pods that find the reservation used up to a later round, the rest of a batch goes on to spot
// and on-demand in the same plan: the reservation is exactly as full a round later. Who wants to wait for reserved capacity
// says so with a requirement on the capacity type.
//
// # Limits and priority
//
// A NodePool's limits are charged with the capacity of the machine that is planned, not with that of the largest that the
// launch may choose, as Karpenter does. That is exact, and safe: where larger alternatives could take the pool beyond a
// limit, the claim does not list them (place/claim.go). Nodes that are going count until they are gone, and a claim in
// flight counts as the largest machine it may still become.
//
// When a limit keeps pods out, everything is planned once more, by priority and with what the machines use up of the
// limits as their price (place/priority.go).
//
// # Room that is kept free
//
// What a CapacityBuffer asks for waits as virtual pods, behind all others (model/virtual.go). They are placed on room
// that nobody else wants, and bought for where there is none; where limits leave real pods out, they are planned apart.
// Nodes that hold such room are not empty (place/headroom.go).
//
// # Static pools
//
// A NodePool with replicas keeps that many nodes, whatever the pods want (lifecycle/static.go). What it lacks is decided
// beside Pack and launched with it; what it has too many of goes with the empty nodes (disrupt/disrupt.go).
//
// # Who may go
//
// Disrupt judges every node of a NodePool for every reason (disrupt/disrupt.go): first by what the node, its pods, their
// PodDisruptionBudgets and its pool say (disrupt/candidate.go, disrupt/pdb.go), then by the pool's budgets, which count all
// commands beside what is leaving already, and by the rates of pool and cluster (disrupt/budgetbook.go), then by room and price.
// What keeps a node is a Verdict with a cause, a sentence and, where only time is in the way, its end; the earliest of
// these is when it is worth asking again. Reasons are asked in an order, and a node goes for the first that lets it:
// surplus of static pools, empty nodes (disrupt/empty.go), expired and drifted ones (disrupt/renew.go), underutilized
// ones. Drift and graceful expiry replace node by node, so that one that cannot go keeps nobody else; they do not wait
// for pods or their budgets where the drain has an end. While pods have just come that no plan was made for, nothing is
// found underutilized. Under the policy Balanced a saving is weighed against the pods that move (disrupt/balance.go).
//
// # Consolidation
//
// Disrupt asks of thousands of nodes what becomes of the cluster without them. One distribution is made of all that
// waits, and each question is a trial of it that places the pods of the nodes in question and is taken back
// (disrupt/simulation.go). First the nodes go whose pods fit on others, those first that cost the most for what evicting
// their pods costs; they are rehearsed together as the kube-scheduler would bind their pods, and those that only a plan
// could make fit are left (disrupt/rehearsal.go). Then groups of nodes are replaced by one cheaper machine
// (disrupt/group.go), then single ones (disrupt/consolidation.go, disrupt/purchase.go). What is kept of one question is
// spent for all that follow, so that all commands can be carried out at once. Pods are sent to the nodes that are the
// least likely to go, and a node that pods are sent to stays, so that nobody moves twice.
//
// Karpenter replaces a node whenever that is a cent cheaper. Here a replacement has to save a fifth of what it replaces,
// or, for each pod it moves, a quarter of what the cluster costs for each of its pods; it is never of the type and
// capacity type that it replaces. A node that needs no replacement may go for any saving. What a small saving earns until
// demand changes again is worth less than the moves.
//
// # Looking again
//
// Each look at a cluster begins anew: most nodes of one that is well packed need no trial, since one of their pods fits on
// no other node, or what their pods need at least costs as much as they do (disrupt/opening.go).
//
// # Devices
//
// Machines with devices are bought for pods that ask for a device, and for others only where a pool has nothing else to
// offer; not when the others are at their limit. Nodes with devices that exist, or are bought for others, take plain pods
// when nothing else does, after the pods that ask for devices. Bare metal is bought only where nothing else would do. All
// that may be launched follows one rule (market/launchable.go). Pods with ResourceClaims are left, with that as the reason.
//
// # Reasons and disagreement
//
// A pod that is left has one sentence for each pool: the fewest labels, zones, resources, limits or refusals that
// together leave no machine (place/obstacle.go, place/reasons.go), or the rule about other pods that no machine can meet.
//
// The kube-scheduler has the last word. A pod that it binds to none of the nodes that were made for it gets no more than
// two; then growing for it pauses, and the pod's reason says until when (place/growthpause.go).
//
// # Volumes
//
// A VolumeIndex answers what a pod's persistent volumes ask of its node (rules/volume_needs.go): a choice of conditions
// on its labels, which joins the pod's own requirements, and how many volumes have to be attached
// (rules/volume_attach.go), which every node counts like a resource. Pods of one Class whose volumes ask the same stay
// together, so that a StatefulSet over three zones is three pod groups and not as many as it has pods. A claim that
// cannot be used is one sentence about the pod.
//
// # Floors
//
// This package is what others see. Behind it are floors that import one way, from the top to the bottom: disrupt, lifecycle
// and place decide; solve buys, and knows integers only; market knows what can be bought; rules knows what pods ask of each
// other and of their volumes; model is what is asked and answered. Each floor's comment says in which order its files are
// read. A test holds the directions.
//
// # Glossary
//
//   - pod: a Pod, reduced to what a plan needs of it
//   - class: the pods that ask the same of a node
//   - pod group: the pods of a class that nothing else tells apart; all work is done for each group once
//   - node: a Node, the NodeClaim it comes from, or both
//   - claim: a node that a plan creates
//   - existing node: a node that takes pods: there, or on its way, with what is free on it
//   - planned node: a node to be bought, while pods are still put on it
//   - machine: an instance type of a NodePool with one capacity type
//   - seller: a NodePool, as it sells machines
//   - market: all machines, and what limits and reservations leave of them
//   - variant: the machines and zones that one alternative of a pod's node affinity allows
//   - reservation: a capacity reservation, counted
//   - zone prices: what a core and a byte cost in one zone with one capacity type
//   - vector: amounts of resources, by dimension
//   - term: conditions on labels that all have to hold
//   - group: what counts one kind of pods by the domains of one label
//   - rules: what a pod asks of groups
//   - preference: a rule that is given up where it leaves a pod without a node
//   - domain choice: one domain for each label that a pod group's rules are about
//   - demand chunk: pods that are to be bought a place, for one domain choice
//   - bundle: pods that have to share a node
//   - obstacles: what keeps a pod group from the machines of one NodePool
//   - candidate: a node that may go
//   - verdict: why a node stays, as far as one reason goes
//   - command: nodes to take away for one reason, and what replaces them
//   - simulation: the cluster, made ready to be asked what becomes of it without some nodes
//   - successor: the claim that replaces a node
//   - headroom: the room that CapacityBuffers keep free
//   - shortage: how many nodes a static pool lacks
//   - mold: a NodePool, made ready to tell which claims drifted
package plan
