// Package plan decides, and does nothing else. Its input is a Snapshot of the cluster, the NodePools, and what can be
// bought for them. Its output is a Plan, with a reason for every pod that it leaves without a node. It does no I/O,
// reads no clock but Snapshot.Time, and gives the same answer for the same input.
//
// # How Pack works
//
// Pods that ask the same of a node are one Class (the Interner assigns it when they enter the mirror). Pods of a class
// that nothing else distinguishes form one pod group, and all work is done per pod group: a pod that fits nowhere costs
// its pod group one attempt. Everything that can be bought is a machine: an instance type of a NodePool with one
// capacity type. What a pod group accepts is a bitset of machines and a mask of zones. What it requests is a vector of
// integers, and so is the room that a machine has left when its DaemonSets run. Pack then works in these steps:
//
//  1. Terms of topology spread and pod affinity become groups that count pods by the domains of a label, and each pod group
//     gets rules over groups (rules/topology.go, rules/rules.go). Preferences are rules that hold until they are given up,
//     one by one, in Karpenter's order (place/shape.go). Volumes restrict which nodes will do (rules/volume_needs.go).
//  2. Pod groups are distributed (place/distribute.go). Pods that were promised a node return to it (place/promised.go).
//     The others fill existing nodes, initialized ones first, then claims in flight. Where rules concern zones or other
//     labels, the pods of a pod group choose their domains one by one, and take the cheapest where the rules leave a choice
//     (place/domains.go, market/zone_prices.go). Pods that have to share a node are bundled (place/bundle.go). Pods that
//     find no room become demand chunks to be bought, each for one choice of domains.
//  3. NodePools are tried by weight, all pools of one weight together. Reserved machines are bought first, because they are
//     already paid for. Pods that must run on demand come next, so that others may fill the room they leave. Pods that may
//     use spot and on-demand take what is cheaper (place/buy.go).
//  4. Demand chunks that are alike to the market form one demand (place/demand.go), and demands are bought together
//     (place/buyer.go, solve). Demands of nearly equal size share a row of a linear program, which finds the worth of a
//     piece of each, and of a unit of every limit that the pods may reach (solve/rows.go, solve/program.go). Machines are
//     filled by worth per dollar with pieces of their real size (solve/guided.go). The result is compared with first fit
//     into claims in flight and with fleets of one type. The cheapest is improved by taking machines out and buying again,
//     until that has not helped for a long time, unless it has more than a hundred machines (solve/improve.go). The number
//     of pods of a kind that a node may hold is a resource in this step, unless many more nodes than it requires are needed
//     anyway (place/caps.go).
//  5. Where the kube-scheduler is not told where each pod goes, ways to buy are compared by their cost after it has placed
//     the pods, including a second round of machines (solve/rehearse.go). The way that is chosen may be at most 5 % dearer
//     to buy than the cheapest.
//  6. Pods are assigned to their machines, the demand chunk with the most pods left first (place/planned_node.go). Pods
//     that cannot be together are bought for again. At the end the binding of all pods is simulated, and pods that could
//     not be bound are taken out of the plan (place/audit.go).
//  7. Machines of the same type become one launch group, with the alternatives that hold the content of each
//     (place/claim.go).
//
// LowerBound (place/bound.go) proves how near the result is to the lowest possible price, and tests enforce it.
//
// # Price and flexibility
//
// A claim lists its cheapest type first, and then others that are large enough for every claim of its group, in order of
// price: sixty types at most. On-demand launches take the cheapest type that has capacity, so choice costs nothing. Spot
// launches weigh price against the risk of interruption. Spot that is dearer than the cheapest on-demand machine for the
// job is not listed, unless minValues needs it or only spot will do. Machines with devices that no pod requests are
// listed only where there is nothing else.
//
// # What a plan costs
//
// The price of a plan is that of its machines plus Pool.NodePrice for each node: the root volume and whatever else the
// operator counts. DaemonSets cost the room they take on the machines and in the zones where they run: the requests of
// each one's newest pod, or of its template if it has no pod (market/daemons.go).
//
// With PackingSpread, the default, a plan in which some node carries more than a third of a workload's waiting pods, or
// of the batch, is made again under that bound. The second plan wins if it costs at most 0.8 % more (solve.AlmostEqual).
// Otherwise the cheapest plan stands, however few nodes it depends on. Bare pods and workloads of fewer than three pods
// count for the batch alone.
//
// A claim on spot then leaves out the spot pools (instance type and zone) that carry more than a third of one of its
// workloads, running pods included, where the rest costs almost the same. Where fewer than three pools do, pools that
// are up to 1.5 % dearer count as well (place/spotpools.go). All others stay in the list, so that EC2 can take the pool
// with the most spare capacity. More than a third of a workload may therefore still end up in one pool when its nodes
// are planned together.
//
// Among pools of one weight the cheapest machine wins, whichever pool sells it. Among equally cheap machines the pool
// whose name sorts first wins. The same input gives the same plan.
//
// # Reserved capacity
//
// A machine of a capacity reservation is a separate machine, and the reservation is counted (market/reservation.go):
// over the whole batch, over all pools that may use it, and over claims in flight that were made for it. Karpenter, in
// its strict mode, leaves pods that find the reservation used up for a later round. Tenon buys spot and on-demand for
// the rest of the batch in the same plan, because the reservation would be just as full a round later. A pod that has to
// wait for reserved capacity needs a requirement on the capacity type.
//
// # Limits and priority
//
// A NodePool's limits are charged with the capacity of the planned machine, and not, as in Karpenter, with that of the
// largest machine that the launch may choose. That is exact, and safe: a claim lists no larger alternatives that could
// take the pool beyond a limit (place/claim.go). Nodes that are leaving count until they are gone, and a claim in flight
// counts as the largest machine that it may still become.
//
// When a limit keeps pods out, everything is planned once more by priority, with the price of a machine set to the share
// of the limits that it uses (place/priority.go).
//
// # Room that is kept free
//
// The pods that a CapacityBuffer asks for wait as virtual pods, behind all others (model/virtual.go). They take room
// that no other pod wants, and machines are bought for them where there is none. Where limits leave real pods out,
// virtual pods are planned separately. Nodes that hold such room are not empty (place/headroom.go).
//
// # Static pools
//
// A NodePool with replicas keeps that many nodes, whatever the pods want (lifecycle/static.go). The nodes that it lacks
// are decided beside Pack and launched with its plan. Disrupt removes the nodes that it has too many of
// (disrupt/disrupt.go).
//
// # Which nodes may be removed
//
// Disrupt judges every node of a NodePool for every reason (disrupt/disrupt.go). It first checks the node, its pods,
// their PodDisruptionBudgets and its pool (disrupt/candidate.go, disrupt/pdb.go). Then it checks the pool's budgets,
// which count all commands and the nodes that are leaving already, and the rates of pool and cluster
// (disrupt/budgetbook.go). Room and price come last. A node that stays gets a Verdict with a cause, a sentence and,
// where only time is in the way, the time at which it ends; the earliest of these is when it is worth asking again.
// Reasons have an order, and a node is removed for the first that permits it: surplus of static pools, empty nodes
// (disrupt/empty.go), expired and drifted nodes (disrupt/renew.go), underutilized nodes. Drift and graceful expiry
// replace node by node, so that a node that cannot be removed does not stop the others; they do not wait for pods or
// their budgets where the drain has a deadline. Where a pool has its nodes rolled out in steps, drifted nodes go only as
// far as the step allows (lifecycle/rollout.go, disrupt/rollout.go). While there are new pods that no plan was made for, no node is
// underutilized. Under the policy Balanced, a saving is weighed against the pods that move (disrupt/balance.go).
//
// # Consolidation
//
// For thousands of nodes, Disrupt asks what would become of the cluster without them. It distributes all waiting pods
// once. Each question is a trial on top of that distribution: it places the pods of the nodes in question, and is then
// undone (disrupt/simulation.go). Disrupt first removes nodes whose pods fit on others, starting with those that cost
// the most compared with what evicting their pods costs. It rehearses these removals together, as the kube-scheduler
// would bind the pods, and keeps nodes whose pods would fit only if a plan placed them (disrupt/rehearsal.go). Then it
// replaces groups of nodes by one cheaper machine (disrupt/group.go), and then single nodes (disrupt/consolidation.go,
// disrupt/purchase.go). The room that one command needs is not offered to later questions, so that all commands can be
// carried out at once. Pods are sent to the nodes that are the least likely to be removed, and a node that receives pods
// stays, so that no pod moves twice.
//
// Karpenter replaces a node whenever that is a cent cheaper. Here a replacement has to save a fifth of what it replaces
// or, for each pod it moves, a quarter of what the cluster costs for each of its pods. It is never of the type and
// capacity type that it replaces. A node that needs no replacement may be removed for any saving. A small saving, which
// lasts only until demand changes, is worth less than the moves.
//
// # Repeated evaluation
//
// Each evaluation of a cluster starts from scratch. In a cluster that is well packed most nodes need no trial, because
// one of their pods fits on no other node, or because what their pods need costs at least as much as the nodes do
// (disrupt/opening.go).
//
// # Devices
//
// Machines with devices are bought for pods that request a device. Other pods get them only where a pool has nothing
// else to offer, and not when the pool's other machines are at their limit. Nodes with devices that exist, or are bought
// for other pods, take plain pods when nothing else does, after the pods that request devices. Bare metal is bought only
// where nothing else would do. One rule covers everything that may be launched (market/launchable.go).
//
// Pods with ResourceClaims (dynamic resource allocation) are planned for where Snapshot.Devices is set. Package devices asks
// the kube-scheduler's own allocator whether a node has the devices that a pod claims. For each kind of claims, the number of
// pods that a machine has devices for is one more resource of the machine (market/stock_devices.go); when pods are assigned,
// their claims are allocated one by one. Pods that share a claim are planned for one node (place/sharing.go).
//
// # Reasons and disagreement
//
// A pod that is left without a node has one sentence for each pool: the fewest labels, zones, resources, limits or
// refusals that together leave no machine (place/obstacle.go, place/reasons.go), or the rule about other pods that no
// machine can meet.
//
// The kube-scheduler has the last word. A pod gets no more than two nodes if the kube-scheduler binds it to none of
// those made for it. Launching for it then pauses, and the pod's reason says until when (model/growth.go,
// place/pack.go).
//
// # Volumes
//
// A VolumeIndex finds what a pod's persistent volumes ask of its node (rules/volume_needs.go): alternative conditions on
// its labels, which join the pod's own requirements, and the number of volumes to attach (rules/volume_attach.go), which
// every node counts like a resource. Pods of one Class whose volumes ask the same stay together, so that a StatefulSet
// over three zones is three pod groups and not one for each pod. A claim that cannot be used is reported in one sentence
// about the pod.
//
// # Layers
//
// This package is the planner's public interface. The packages behind it are layers, each of which imports only lower
// ones. From the top: disrupt, lifecycle and place decide; solve buys, and knows integers only; market knows what can be
// bought; devices knows what pods claim and what nodes have of it; rules knows what pods ask of each other and of their
// volumes; model has the types of questions and answers. Each layer's package comment gives the order in which to read its
// files. A test in internal/architecture, where layers are called floors, checks the imports.
//
// # Glossary
//
//   - pod: a Pod, reduced to what a plan needs of it
//   - class: the pods that ask the same of a node
//   - pod group: the pods of a class that nothing else distinguishes; all work is done once per group
//   - node: a Node, the NodeClaim it comes from, or both
//   - claim: a node that a plan creates
//   - existing node: a node that can take pods, there or on its way, with its free room
//   - planned node: a node to be bought, while pods are still being assigned to it
//   - machine: an instance type of a NodePool with one capacity type
//   - seller: a NodePool, as it sells machines
//   - market: all machines, and what limits and reservations leave of them
//   - variant: the machines and zones that one alternative of a pod's node affinity allows
//   - reservation: a capacity reservation, counted
//   - zone prices: what a core and a byte cost in one zone with one capacity type
//   - vector: amounts of resources, by dimension
//   - term: conditions on labels that all have to hold
//   - group: a count of one kind of pods by the domains of one label
//   - rules: what a pod asks of groups
//   - preference: a rule that is given up where it leaves a pod without a node
//   - domain choice: one domain for each label that a pod group's rules are about
//   - demand chunk: pods to buy a place for, for one domain choice
//   - bundle: pods that have to share a node
//   - obstacles: what keeps a pod group from the machines of one NodePool
//   - candidate: a node that may be removed
//   - verdict: why a node stays, as far as one reason goes
//   - command: nodes to remove for one reason, and what replaces them
//   - simulation: the cluster, prepared for trials of what becomes of it without some nodes
//   - successor: the claim that replaces a node
//   - headroom: the room that CapacityBuffers keep free
//   - shortage: how many nodes a static pool lacks
//   - mold: a NodePool, prepared to tell which claims drifted
package plan
