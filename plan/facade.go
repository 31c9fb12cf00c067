package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/disrupt"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
)

// The input: one cluster at one moment, and what can be bought for it. Each name is explained where it is declared.
type (
	Input            = model.Input
	Snapshot         = model.Snapshot
	Pool             = model.Pool
	Node             = model.Node
	Pod              = model.Pod
	DaemonSet        = model.DaemonSet
	DisruptionBudget = model.DisruptionBudget
	Growth           = model.Growth
	Hold             = model.Hold
	Siblings         = model.Siblings
)

// What a pod asks of a node, in a form that pods share and that can be compared.
type (
	Interner  = model.Interner
	Class     = model.Class
	Labels    = model.Labels
	HostPort  = model.HostPort
	Resources = model.Resources
	Wish      = model.Wish
)

// Volumes, to the extent that they decide where pods can run.
type (
	Storage      = model.Storage
	StorageClass = model.StorageClass
	Volume       = model.Volume
	VolumeClaim  = model.VolumeClaim
)

// Devices that pods claim by dynamic resource allocation.
type (
	Devices         = model.Devices
	DeviceTemplates = model.DeviceTemplates
	LearntDevices   = model.LearntDevices
	NodeKind        = model.NodeKind
	PodClaim        = model.PodClaim
)

// The results of Pack and Disrupt.
type (
	Plan       = model.Plan
	Claim      = model.Claim
	Placement  = model.Placement
	Unplaced   = model.Unplaced
	Reason     = model.Reason
	Unsellable = model.Unsellable

	Disruption  = model.Disruption
	Weighed     = model.Weighed
	Observation = model.Observation
	Command     = model.Command
	Verdict     = model.Verdict
	Cause       = model.Cause
	Allowance   = disrupt.Allowance
	Approvals   = disrupt.Approvals
	Proposal    = disrupt.Proposal
	Limit       = disrupt.Limit

	ReplacementOrder    = model.ReplacementOrder
	OrderedReplacements = model.OrderedReplacements
)

// The life of nodes: those that exist, and those that are missing.
type (
	Shortage   = lifecycle.Shortage
	DrainPod   = model.DrainPod
	DrainStep  = lifecycle.DrainStep
	DrainTerms = lifecycle.DrainTerms
	Expiry     = lifecycle.Expiry
	Machine    = lifecycle.Machine
	Mold       = lifecycle.Mold

	RolloutFacts     = lifecycle.RolloutFacts
	RolloutNode      = lifecycle.RolloutNode
	RolloutAnswer    = lifecycle.RolloutAnswer
	RolloutJudgement = lifecycle.RolloutJudgement
)

// Policies, and the effect of NodeOverlays on prices and capacity.
type (
	MinValuesPolicy  = model.MinValuesPolicy
	PreferencePolicy = model.PreferencePolicy
	Packing          = model.Packing
	Overlays         = market.Overlays
	OverlayProblem   = market.OverlayProblem
)

// The causes for which a Verdict keeps a node.
const (
	CauseApproval  = model.CauseApproval
	CauseBudget    = model.CauseBudget
	CauseBuffer    = model.CauseBuffer
	CauseLeaving   = model.CauseLeaving
	CauseNode      = model.CauseNode
	CauseNominated = model.CauseNominated
	CauseNone      = model.CauseNone
	CausePDB       = model.CausePDB
	CausePaused    = model.CausePaused
	CausePod       = model.CausePod
	CausePolicy    = model.CausePolicy
	CausePrice     = model.CausePrice
	CauseQuiet     = model.CauseQuiet
	CauseRollout   = model.CauseRollout
	CauseRoom      = model.CauseRoom
	CauseWindow    = model.CauseWindow
)

// Why a node is removed, how it drifted, and what holds up its drain.
const (
	DisruptionReasonExpired         = disrupt.DisruptionReasonExpired
	DisruptionReasonOrdered         = disrupt.DisruptionReasonOrdered
	DisruptionReasonOverprovisioned = lifecycle.DisruptionReasonOverprovisioned
	DriftNodePool                   = lifecycle.DriftNodePool
	DriftRequirements               = lifecycle.DriftRequirements
	HoldTerminating                 = lifecycle.HoldTerminating
)

// Policies, the first of each being the meaning of an empty value, and limits.
const (
	MinValuesStrict     = model.MinValuesStrict
	MinValuesBestEffort = model.MinValuesBestEffort
	PreferencesRespect  = model.PreferencesRespect
	PreferencesIgnore   = model.PreferencesIgnore
	PackingSpread       = model.PackingSpread
	PackingCheapest     = model.PackingCheapest

	MaxInstanceTypes = model.MaxInstanceTypes
	MostVirtual      = model.MostVirtual
)

// Allowances returns what the budgets of all NodePools allow, ordered by NodePool.
func Allowances(in Input) []Allowance { return disrupt.Allowances(in) }

// Limits returns the budgets and rates of the whole cluster, and the rates of NodePools, and how far they are used up.
func Limits(in Input) []Limit { return disrupt.Limits(in) }

// ApplyLimitRanges applies to a container the defaults that the LimitRanges of its namespace have for containers
// without values of their own.
func ApplyLimitRanges(container *corev1.ResourceRequirements, ranges []*corev1.LimitRange) {
	model.ApplyLimitRanges(container, ranges)
}

// AverageRequest returns the average CPU and memory request of the pods that wait for a node.
func AverageRequest(pods []*Pod) Resources { return model.AverageRequest(pods) }

// CompletePools returns the slices of the pools of which all slices of the newest generation are there.
func CompletePools(published []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	return model.CompletePools(published)
}

// ParseLearntDevices reads what LearntDevices.Text has written.
func ParseLearntDevices(text string) (LearntDevices, error) { return model.ParseLearntDevices(text) }

// KindOfNode returns the kind of a node with these labels.
func KindOfNode(labels map[string]string) NodeKind { return model.KindOfNode(labels) }

// Confirm checks a command once more just before it is carried out, and returns what keeps its nodes now.
func Confirm(in Input, command Command) []Verdict {
	return disrupt.Confirm(place.WithProvided(in), command)
}

// Disrupt finds all nodes that may be removed now, and says what keeps every other node of a NodePool.
func Disrupt(in Input) Disruption { return disrupt.Disrupt(place.WithProvided(in)) }

// DisruptionReasons returns the reasons for which Disrupt removes nodes, in order of precedence.
func DisruptionReasons() []karpv1.DisruptionReason { return disrupt.DisruptionReasons() }

// Although returns how a sentence begins that says why a node stays although reason applies to it, such as "it has drifted,
// but ". It is empty for reasons that state no fact about the node.
func Although(reason karpv1.DisruptionReason) string { return disrupt.Although(reason) }

// Drain decides what a drain does next with the pods of one node.
func Drain(pods []DrainPod, terms DrainTerms) DrainStep { return lifecycle.Drain(pods, terms) }

// ExpiryOf says what is to be done at a given time about a claim that has expired.
func ExpiryOf(claim *karpv1.NodeClaim, pool *karpv1.NodePool, now time.Time) Expiry {
	return lifecycle.ExpiryOf(claim, pool, now)
}

// FindHeadroom finds room for the virtual pods of buffers on nodes that exist or are on their way.
func FindHeadroom(snapshot *Snapshot) place.Headroom { return place.FindHeadroom(snapshot) }

// FindRepairs finds the nodes that a policy calls unhealthy and tolerates no longer.
func FindRepairs(machines []Machine, policies []cloud.RepairPolicy, now time.Time) lifecycle.Repairs {
	return lifecycle.FindRepairs(machines, policies, now)
}

// Illness returns what the conditions of a Node say is wrong with it by some policies, and since when; empty for a healthy
// Node.
func Illness(node *corev1.Node, policies []cloud.RepairPolicy) (what string, since time.Time) {
	return lifecycle.Illness(node, policies)
}

// JudgeRollout decides how far the rollout of a pool is.
func JudgeRollout(f RolloutFacts) RolloutJudgement { return lifecycle.JudgeRollout(f) }

// RolloutTarget identifies what new nodes of a pool are made from; empty while that is not known.
func RolloutTarget(pool *karpv1.NodePool, class cloud.NodeClass, kind cloud.Kind) string {
	return lifecycle.Target(pool, class, kind)
}

// LowerBound returns a price, in US dollars per hour, that no plan can undercut if existing nodes take none of the
// pods.
func LowerBound(in Input) float64 { return place.LowerBound(place.WithProvided(in)) }

// NewMold returns the mold of a pool.
func NewMold(pool *karpv1.NodePool) (*Mold, error) { return lifecycle.NewMold(pool) }

// NodePrices returns a function that says what a node costs per hour, in the currency of the region's prices, as far as that is
// known.
func NodePrices(in Input) func(n *Node) (price float64, known bool) { return disrupt.NodePrices(in) }

// NewOverlays returns the NodeOverlays that apply to pools, and the problems of the others, by name.
func NewOverlays(keys cloud.LabelKeys, all []*v1alpha1.NodeOverlay, pools []Pool) (*Overlays, map[string]OverlayProblem) {
	return market.NewOverlays(keys, all, pools)
}

// Partition returns the partition that a NodeClaim asks for in the placement group of its node class, whose instance types these
// are; empty if it leaves that to the cloud.
func Partition(keys cloud.LabelKeys, claim *karpv1.NodeClaim, types []*cloud.InstanceType) string {
	return model.Partition(keys, claim, types)
}

// Tenancy returns the tenancy, default or dedicated, that a NodeClaim's machine has or will have; empty if the provider offers
// no choice.
func Tenancy(keys cloud.LabelKeys, claim *karpv1.NodeClaim) string { return model.Tenancy(keys, claim) }

// Offerings returns the ways to launch a NodeClaim, planned or written by hand, the cheapest first.
func Offerings(keys cloud.LabelKeys, claim *karpv1.NodeClaim, types []*cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time, now time.Time, policy MinValuesPolicy) ([]cloud.OfferingKey, error) {
	return market.Offerings(keys, claim, types, unavailable, now, policy)
}

// Join combines commands of one reason that each remove a single node and launch nothing. The pods of such nodes move at
// the same time, so that large pods get a place before small ones, and one command is easier to follow than many. A
// combined command is Independent. Commands for which alone reports true stay as they are, and so does the order.
func Join(commands []Command, alone func(Command) bool) []Command {
	return disrupt.Join(commands, alone)
}

// Observe says, by NodePool, what would be launched and removed now if no pool were only observed.
func Observe(in Input) map[string]Observation { return disrupt.Observe(in) }

// Describe says what an observation found, in one sentence; empty if nothing would be done.
func Describe(o Observation) string { return disrupt.Describe(o) }

// Outdated says why a decision that people were asked to approve no longer holds; empty if it holds. decided is what Disrupt
// returned for the same input.
func Outdated(in Input, decided Disruption, asked karpv1.Approval) string {
	return disrupt.Outdated(place.WithProvided(in), decided, asked)
}

// Overtaken reports whether most of the pods that a command was to move have left since it was decided.
func Overtaken(moves, left int) bool { return disrupt.Overtaken(moves, left) }

// Pack decides where the pods that wait for a node go: onto nodes that exist, claims in flight, or new claims.
func Pack(in Input) Plan { return place.Pack(place.WithProvided(in)) }

// Placed returns the pods, by UID, for which serving nodes have room when planned with those nodes alone.
func Placed(snapshot *Snapshot, preferences PreferencePolicy) map[types.UID]bool {
	return place.Placed(snapshot, preferences)
}

// PlacesPods reports whether nodes are removed for a reason only once their pods have a place elsewhere.
func PlacesPods(reason karpv1.DisruptionReason) bool { return model.PlacesPods(reason) }

// Propose returns for which decisions people have to be asked, and which of those that wait no longer hold. decided is what
// Disrupt returned for the same input.
func Propose(in Input, decided Disruption) Approvals {
	return disrupt.Propose(place.WithProvided(in), decided)
}

// Protected says what on a node, or on one of its pods, asks that the node not be disrupted for a reason; empty if
// nothing does.
func Protected(n *Node, reason karpv1.DisruptionReason, now time.Time) string {
	return disrupt.Protected(n, reason, now)
}

// Protection reads the annotation karpenter.sh/do-not-disrupt. A duration of zero means that protection has no end.
func Protection(value string) (protects bool, lasts time.Duration, err error) {
	return model.Protection(value)
}

// Replace decides how nodes are replaced that a person has ordered to be replaced.
func Replace(in Input, order ReplacementOrder) OrderedReplacements {
	return disrupt.Replace(place.WithProvided(in), order)
}

// ResourcesOf reduces a list of quantities to Resources.
func ResourcesOf(list corev1.ResourceList) Resources { return model.ResourcesOf(list) }

// Shortages finds the static pools that have fewer nodes than their replicas, ordered by name.
func Shortages(snapshot *Snapshot) []Shortage { return lifecycle.Shortages(snapshot) }

// Static plans the nodes that static pools lack.
func Static(in Input) (claims []Claim, refused []Reason) { return lifecycle.Static(in) }

// Strategies returns the names of Pack's ways to look for a lower price. Input.Without may leave out any one of them.
func Strategies() []string { return place.Strategies() }
