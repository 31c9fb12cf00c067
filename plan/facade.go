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

// The terms in which the planner is asked and answers.
type (
	// Amount is a quantity of one extended resource.
	Amount = model.Amount
	// Cause is the kind of thing that keeps a node.
	Cause = model.Cause
	// Claim is one node to create.
	Claim = model.Claim
	// Class is everything a pod asks of the node it runs on.
	Class = model.Class
	// Command is one decision: nodes to take away for one reason.
	Command = model.Command
	// DaemonSet is what planning needs of a DaemonSet: the shape of the pod it puts on every node that admits it.
	DaemonSet = model.DaemonSet
	// Disruption is what may be taken away, and why the rest may not.
	Disruption = model.Disruption
	// DisruptionBudget is what planning needs of a PodDisruptionBudget.
	DisruptionBudget = model.DisruptionBudget
	// DrainPod is what a drain needs of a pod on the node.
	DrainPod = model.DrainPod
	// DrainStep is what a drain does next.
	DrainStep = lifecycle.DrainStep
	// DrainTerms are what holds for all pods of a drain.
	DrainTerms = lifecycle.DrainTerms
	// Growth is what was done so far for a pod that still waits.
	Growth = model.Growth
	// Headroom says where the room is that buffers keep free.
	Headroom = place.Headroom
	// Hold keeps a node from being disrupted until a moment, whatever speaks for it.
	Hold = model.Hold
	// HostPort is a port of the node a pod takes for itself.
	HostPort = model.HostPort
	// Input is everything Pack knows.
	Input = model.Input
	// Interner makes equal things one thing, so that ten thousand pods of forty shapes cost forty shapes.
	Interner = model.Interner
	// Labels are a pod's namespace and labels: all that a label selector can see of it.
	Labels = model.Labels
	// Machine is a Node and the NodeClaim it comes from, nil where there is none.
	Machine = lifecycle.Machine
	// MinValuesPolicy says what becomes of a NodePool whose minValues cannot be met.
	MinValuesPolicy = model.MinValuesPolicy
	// Mold is a NodePool made ready to be compared with many claims.
	Mold = lifecycle.Mold
	// Mounts are the volumes of a pod that somebody has to bring to its node.
	Mounts = model.Mounts
	// Node is a place where pods run or will run: a Node, the NodeClaim it comes from, or both.
	Node = model.Node
	// OverlayProblem says why a NodeOverlay does not apply.
	OverlayProblem = market.OverlayProblem
	// Overlays are the NodeOverlays that apply.
	Overlays = market.Overlays
	// Packing says what wins between plans of almost equal cost.
	Packing = model.Packing
	// Placement is a pod that fits on a node which exists or is on its way.
	Placement = model.Placement
	// Plan is what Pack decided.
	Plan = model.Plan
	// Pod is what planning needs of a pod.
	Pod = model.Pod
	// Pool is a NodePool and what can be launched for its node class.
	Pool = model.Pool
	// PreferencePolicy says what the planner makes of preferences: preferred terms of affinity, spread with
	// ScheduleAnyway and taints with PreferNoSchedule.
	PreferencePolicy = model.PreferencePolicy
	// Reason is why a NodePool cannot serve a pod.
	Reason = model.Reason
	// Repair is one node that has been unhealthy for too long.
	Repair = lifecycle.Repair
	// Repairs is which nodes have been unhealthy for too long.
	Repairs = lifecycle.Repairs
	// Requirement is one condition on a node's labels.
	Requirement = model.Requirement
	// Resources is an amount of everything a pod can ask for, in integers.
	Resources = model.Resources
	// Shortage is how many nodes a static pool lacks.
	Shortage = lifecycle.Shortage
	// Siblings names the pods of one owner that are all the same to the kube-scheduler.
	Siblings = model.Siblings
	// Snapshot is one cluster at one moment.
	Snapshot = model.Snapshot
	// Storage is what a cluster's volumes are, as far as they decide where pods can run.
	Storage = model.Storage
	// StorageClass is a StorageClass.
	StorageClass = model.StorageClass
	// Topology is a choice of conditions on the labels of a node.
	Topology = model.Topology
	// Unplaced is a pod that stays without a node, and why.
	Unplaced = model.Unplaced
	// Verdict is why a node stays, as far as one reason goes.
	Verdict = model.Verdict
	// Volume is a PersistentVolume.
	Volume = model.Volume
	// VolumeClaim is a PersistentVolumeClaim.
	VolumeClaim = model.VolumeClaim
	// Wish is how much room a CapacityBuffer asks for.
	Wish = model.Wish
)

// The words that stand for themselves.
const (
	// CauseBudget says that the NodePool's budgets are spent.
	CauseBudget = model.CauseBudget
	// CauseBuffer says that a CapacityBuffer needs the room on the node.
	CauseBuffer = model.CauseBuffer
	// CauseLeaving says that the node is going away already.
	CauseLeaving = model.CauseLeaving
	// CauseNode says that something about the node itself keeps it: it is not initialized, or asks not to be
	// disrupted.
	CauseNode = model.CauseNode
	// CauseNominated says that pods are expected on the node.
	CauseNominated = model.CauseNominated
	// CauseNone says that the reason does not apply to the node.
	CauseNone = model.CauseNone
	// CausePDB says that a PodDisruptionBudget allows no eviction of a pod on the node.
	CausePDB = model.CausePDB
	// CausePod says that a pod on the node keeps it.
	CausePod = model.CausePod
	// CausePolicy says that the NodePool does not want nodes to go for the reason.
	CausePolicy = model.CausePolicy
	// CausePrice says that what would replace the node saves too little.
	CausePrice = model.CausePrice
	// CauseQuiet says that the node has not been quiet, or there, for long enough.
	CauseQuiet = model.CauseQuiet
	// CauseRoom says that the node's pods would find no other place.
	CauseRoom = model.CauseRoom
	// DisruptionReasonExpired is why a node goes that is older than its expireAfter and may be replaced gracefully.
	DisruptionReasonExpired = disrupt.DisruptionReasonExpired
	// DisruptionReasonOverprovisioned is why a node of a static pool goes that has more than its replicas.
	DisruptionReasonOverprovisioned = lifecycle.DisruptionReasonOverprovisioned
	// DriftInstanceType says that the node's instance type is not sold any more as the node was.
	DriftInstanceType = lifecycle.DriftInstanceType
	// DriftNodePool says that the template of the NodePool has changed since the claim was made.
	DriftNodePool = lifecycle.DriftNodePool
	// DriftRequirements says that the node is not one of those the NodePool's requirements ask for.
	DriftRequirements = lifecycle.DriftRequirements
	// HoldTerminating is a pod that takes long to end, or does not end.
	HoldTerminating = lifecycle.HoldTerminating
	// MaxInstanceTypes is how many instance types one launch chooses from.
	MaxInstanceTypes = model.MaxInstanceTypes
	// MinValuesBestEffort launches with the choice there is and marks the claim.
	MinValuesBestEffort = model.MinValuesBestEffort
	// MinValuesStrict launches nothing that leaves less choice than minValues demands.
	MinValuesStrict = model.MinValuesStrict
	// MostVirtual bounds the pods one buffer keeps room for, so that one mistyped number cannot fill the memory.
	MostVirtual = model.MostVirtual
	// PackingCheapest takes the cheapest plan, however few nodes it depends on.
	PackingCheapest = model.PackingCheapest
	// PackingSpread lets no node carry more than a third of a workload or of a batch, and no spot pool (instance type
	// and zone) more than a third of a workload, where that costs almost nothing.
	PackingSpread = model.PackingSpread
	// PreferencesIgnore leaves preferences to the kube-scheduler.
	PreferencesIgnore = model.PreferencesIgnore
	// PreferencesRespect holds to preferences as if they were required, and gives them up one by one, in the order of
	// Karpenter, where a pod would otherwise get no node.
	PreferencesRespect = model.PreferencesRespect
	// SpotChoice is how many cheaper instance types there have to be for spot to replace spot, and how many the launch
	// may then choose from: a node that came out of fewer would be replaced again and again.
	SpotChoice = disrupt.SpotChoice
)

// The errors.
var (
	// ErrNothingToLaunch says that no instance type and offering meets a claim.
	ErrNothingToLaunch = market.ErrNothingToLaunch
)

// ApplyLimitRanges gives a container what the LimitRanges of its namespace say containers get that name nothing
// themselves.
func ApplyLimitRanges(container *corev1.ResourceRequirements, ranges []*corev1.LimitRange) {
	model.ApplyLimitRanges(container, ranges)
}

// AverageRequest is what pods that wait for a node ask for on average, of CPU and memory.
func AverageRequest(pods []*Pod) Resources {
	return model.AverageRequest(pods)
}

// Basis is what growth rests on: other pools, or what can be bought for them, are another.
func Basis(pools []Pool) string {
	return place.Basis(pools)
}

// BestKnown is what the cheapest plan that is found for the pods that wait costs, in US dollars per hour, were
// every pod to go where it is planned.
func BestKnown(in Input) float64 {
	return place.BestKnown(in)
}

// Confirm looks once more at a command that is about to be carried out, and says what has come in between; nothing
// where all of its nodes may go.
func Confirm(in Input, command Command) []Verdict {
	return disrupt.Confirm(in, command)
}

// Consolidatable says whether the condition Consolidatable holds for a node: it is initialized, and no pod has
// come or gone for the pool's consolidateAfter.
func Consolidatable(n *Node, pool *karpv1.NodePool, now time.Time) (holds bool, when time.Time) {
	return lifecycle.Consolidatable(n, pool, now)
}

// Disrupt finds everything that may be taken away now, and says of every other node of a NodePool what keeps it,
// for each reason.
func Disrupt(in Input) Disruption {
	return disrupt.Disrupt(in)
}

// DisruptionReasons are the reasons for which Disrupt takes nodes away, in the order in which it asks.
func DisruptionReasons() []karpv1.DisruptionReason {
	return disrupt.DisruptionReasons()
}

// Drain decides what a drain does next with the pods of one node.
func Drain(pods []DrainPod, terms DrainTerms) DrainStep {
	return lifecycle.Drain(pods, terms)
}

// FindHeadroom finds room for the virtual pods of buffers on the nodes that are there or on their way.
func FindHeadroom(snapshot *Snapshot) Headroom {
	return place.FindHeadroom(snapshot)
}

// FindRepairs finds the nodes that a policy calls unhealthy and no longer tolerates.
func FindRepairs(machines []Machine, policies []cloud.RepairPolicy, now time.Time) Repairs {
	return lifecycle.FindRepairs(machines, policies, now)
}

// Join makes one Node of a claim and the Node its machine became, each reduced by itself.
func Join(claim *Node, node *Node) *Node {
	return model.Join(claim, node)
}

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, with what nodes cost
// beside their machines, given that existing nodes take none of the pods.
func LowerBound(in Input) float64 {
	return place.LowerBound(in)
}

// NewInterner returns an empty Interner.
func NewInterner() *Interner {
	return model.NewInterner()
}

// NewMold returns the mold of a pool.
func NewMold(pool *karpv1.NodePool) (*Mold, error) {
	return lifecycle.NewMold(pool)
}

// NewOverlays finds the NodeOverlays that apply to pools, and what is wrong with the others, by name.
func NewOverlays(all []*v1alpha1.NodeOverlay, pools []Pool) (*Overlays, map[string]OverlayProblem) {
	return market.NewOverlays(all, pools)
}

// Offerings are the ways to launch a NodeClaim, whether it was planned or written by hand: the cheapest first, of
// one capacity type (reserved before spot before on-demand), of at most MaxInstanceTypes types.
func Offerings(claim *karpv1.NodeClaim, types []*cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time, now time.Time, policy MinValuesPolicy) ([]cloud.OfferingKey, error) {
	return market.Offerings(claim, types, unavailable, now, policy)
}

// OnlyWhileEmpty says that a reason lets nodes go only while nothing runs on them that would have to move.
func OnlyWhileEmpty(reason karpv1.DisruptionReason) bool {
	return model.OnlyWhileEmpty(reason)
}

// Overprovision finds the nodes that static pools have beyond their replicas.
func Overprovision(snapshot *Snapshot) []Command {
	return lifecycle.Overprovision(snapshot)
}

// Pack decides where the pods that wait for a node go: onto nodes that exist, onto claims in flight, or onto new
// claims.
func Pack(in Input) Plan {
	return place.Pack(in)
}

// PackingOf is how the pods of a NodePool are packed: as its annotation tenon.sh/packing says, or in the given way
// where it says nothing or nothing that can be read.
func PackingOf(pool *karpv1.NodePool, otherwise Packing) Packing {
	return model.PackingOf(pool, otherwise)
}

// PlacesPods says that nodes go for a reason only once their pods have a place elsewhere, many of them at the same
// time.
func PlacesPods(reason karpv1.DisruptionReason) bool {
	return model.PlacesPods(reason)
}

// PodRequests are the pod's requests as the kube-scheduler counts them, and the pod itself.
func PodRequests(pod *corev1.Pod) Resources {
	return model.PodRequests(pod)
}

// Protected says what asks, on a node or on one of its pods, that the node is not disrupted for a reason; nothing
// where nothing does.
func Protected(n *Node, reason karpv1.DisruptionReason, now time.Time) string {
	return disrupt.Protected(n, reason, now)
}

// Protection reads the annotation karpenter.sh/do-not-disrupt of a Node, a NodeClaim or a pod: "true" protects
// without end, a positive Go duration for that long, and an empty value not at all.
func Protection(value string) (protects bool, lasts time.Duration, err error) {
	return model.Protection(value)
}

// ResourcesOf reduces a list of quantities.
func ResourcesOf(list corev1.ResourceList) Resources {
	return model.ResourcesOf(list)
}

// Shortages finds the static pools that have fewer nodes than their replicas, ordered by name.
func Shortages(snapshot *Snapshot) []Shortage {
	return lifecycle.Shortages(snapshot)
}

// Static plans the nodes that static pools lack.
func Static(in Input) (claims []Claim, refused []Reason) {
	return lifecycle.Static(in)
}

// VirtualPods are the pods of a buffer, made from a model.
func VirtualPods(m *Pod, buffer types.UID, name string, count int) []*Pod {
	return model.VirtualPods(m, buffer, name, count)
}
