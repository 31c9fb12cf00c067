package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
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

// What is known: one cluster at one moment, and what can be bought for it. A name is explained where it is declared.
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

// What a pod asks of a node, in shared and comparable form.
type (
	Interner  = model.Interner
	Class     = model.Class
	Labels    = model.Labels
	HostPort  = model.HostPort
	Resources = model.Resources
	Wish      = model.Wish
)

// Volumes, as far as they decide where pods can run.
type (
	Storage      = model.Storage
	StorageClass = model.StorageClass
	Volume       = model.Volume
	VolumeClaim  = model.VolumeClaim
)

// What Pack and Disrupt answer.
type (
	Plan      = model.Plan
	Claim     = model.Claim
	Placement = model.Placement
	Unplaced  = model.Unplaced
	Reason    = model.Reason

	Disruption = model.Disruption
	Command    = model.Command
	Verdict    = model.Verdict
	Cause      = model.Cause
)

// What becomes of nodes that are there or lacking.
type (
	Shortage   = lifecycle.Shortage
	DrainPod   = model.DrainPod
	DrainStep  = lifecycle.DrainStep
	DrainTerms = lifecycle.DrainTerms
	Expiry     = lifecycle.Expiry
	Machine    = lifecycle.Machine
	Mold       = lifecycle.Mold
)

// Policies, and what NodeOverlays make of prices and capacity.
type (
	MinValuesPolicy  = model.MinValuesPolicy
	PreferencePolicy = model.PreferencePolicy
	Packing          = model.Packing
	Overlays         = market.Overlays
	OverlayProblem   = market.OverlayProblem
)

// What keeps a node, as a Verdict says it.
const (
	CauseBudget    = model.CauseBudget
	CauseBuffer    = model.CauseBuffer
	CauseLeaving   = model.CauseLeaving
	CauseNode      = model.CauseNode
	CauseNominated = model.CauseNominated
	CauseNone      = model.CauseNone
	CausePDB       = model.CausePDB
	CausePod       = model.CausePod
	CausePolicy    = model.CausePolicy
	CausePrice     = model.CausePrice
	CauseQuiet     = model.CauseQuiet
	CauseRoom      = model.CauseRoom
)

// Why a node goes, how it drifted, and what holds up its drain.
const (
	DisruptionReasonExpired         = disrupt.DisruptionReasonExpired
	DisruptionReasonOverprovisioned = lifecycle.DisruptionReasonOverprovisioned
	DriftNodePool                   = lifecycle.DriftNodePool
	DriftRequirements               = lifecycle.DriftRequirements
	HoldTerminating                 = lifecycle.HoldTerminating
)

// Policies, of each of which the first is what an empty one means, and bounds.
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

// ApplyLimitRanges gives a container what the LimitRanges of its namespace say of containers that name nothing themselves.
func ApplyLimitRanges(container *corev1.ResourceRequirements, ranges []*corev1.LimitRange) {
	model.ApplyLimitRanges(container, ranges)
}

// AverageRequest is what pods that wait for a node ask for on average, of CPU and memory.
func AverageRequest(pods []*Pod) Resources { return model.AverageRequest(pods) }

// Confirm looks once more at a command that is about to be carried out, and says what keeps its nodes by now.
func Confirm(in Input, command Command) []Verdict { return disrupt.Confirm(in, command) }

// Disrupt finds everything that may be taken away now, and says what keeps every other node of a NodePool.
func Disrupt(in Input) Disruption { return disrupt.Disrupt(in) }

// DisruptionReasons are the reasons for which Disrupt takes nodes away, in the order in which it asks.
func DisruptionReasons() []karpv1.DisruptionReason { return disrupt.DisruptionReasons() }

// Drain decides what a drain does next with the pods of one node.
func Drain(pods []DrainPod, terms DrainTerms) DrainStep { return lifecycle.Drain(pods, terms) }

// ExpiryOf is what becomes at a moment of a claim that has expired.
func ExpiryOf(claim *karpv1.NodeClaim, pool *karpv1.NodePool, now time.Time) Expiry {
	return lifecycle.ExpiryOf(claim, pool, now)
}

// FindHeadroom finds room for the virtual pods of buffers on the nodes that are there or on their way.
func FindHeadroom(snapshot *Snapshot) place.Headroom { return place.FindHeadroom(snapshot) }

// FindRepairs finds the nodes that a policy calls unhealthy and no longer tolerates.
func FindRepairs(machines []Machine, policies []cloud.RepairPolicy, now time.Time) lifecycle.Repairs {
	return lifecycle.FindRepairs(machines, policies, now)
}

// LowerBound is what no plan can undercut, in US dollars per hour, given that existing nodes take none of the pods.
func LowerBound(in Input) float64 { return place.LowerBound(in) }

// NewMold returns the mold of a pool.
func NewMold(pool *karpv1.NodePool) (*Mold, error) { return lifecycle.NewMold(pool) }

// NewOverlays finds the NodeOverlays that apply to pools, and what is wrong with the others, by name.
func NewOverlays(all []*v1alpha1.NodeOverlay, pools []Pool) (*Overlays, map[string]OverlayProblem) {
	return market.NewOverlays(all, pools)
}

// Offerings are the ways to launch a NodeClaim, whether it was planned or written by hand, the cheapest first.
func Offerings(claim *karpv1.NodeClaim, types []*cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time, now time.Time, policy MinValuesPolicy) ([]cloud.OfferingKey, error) {
	return market.Offerings(claim, types, unavailable, now, policy)
}

// Overtaken says that most of the pods which a command was to move have left since it was decided.
func Overtaken(moves, left int) bool { return disrupt.Overtaken(moves, left) }

// Pack decides where the pods that wait for a node go: onto nodes that exist, claims in flight, or new claims.
func Pack(in Input) Plan { return place.Pack(in) }

// Placed says for which pods, by UID, the nodes that serve have room, planned with those nodes and nothing else.
func Placed(snapshot *Snapshot, preferences PreferencePolicy) map[types.UID]bool {
	return place.Placed(snapshot, preferences)
}

// PlacesPods says that nodes go for a reason only once their pods have a place elsewhere.
func PlacesPods(reason karpv1.DisruptionReason) bool { return model.PlacesPods(reason) }

// Protected says what asks, on a node or on one of its pods, that the node is not disrupted for a reason.
func Protected(n *Node, reason karpv1.DisruptionReason, now time.Time) string {
	return disrupt.Protected(n, reason, now)
}

// Protection reads the annotation karpenter.sh/do-not-disrupt; zero is without end.
func Protection(value string) (protects bool, lasts time.Duration, err error) {
	return model.Protection(value)
}

// ResourcesOf reduces a list of quantities.
func ResourcesOf(list corev1.ResourceList) Resources { return model.ResourcesOf(list) }

// Shortages finds the static pools that have fewer nodes than their replicas, ordered by name.
func Shortages(snapshot *Snapshot) []Shortage { return lifecycle.Shortages(snapshot) }

// Static plans the nodes that static pools lack.
func Static(in Input) (claims []Claim, refused []Reason) { return lifecycle.Static(in) }

// Strategies are the names of Pack's ways to look for a lower price, each of which Input.Without may leave out.
func Strategies() []string { return place.Strategies() }
