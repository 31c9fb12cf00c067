package model

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// MaxInstanceTypes is how many instance types one launch chooses from.
const MaxInstanceTypes = 60

// MinValuesPolicy says what happens to a NodePool whose minValues cannot be met.
type MinValuesPolicy string

// The policies.
const (
	// MinValuesStrict launches nothing that leaves less choice than minValues demands.
	MinValuesStrict MinValuesPolicy = "Strict"
	// MinValuesBestEffort launches with the choice there is and marks the claim.
	MinValuesBestEffort MinValuesPolicy = "BestEffort"
)

// Snapshot is one cluster at one moment. It is immutable, as is everything it points to: whoever builds the next one
// copies what changed and shares the rest.
type Snapshot struct {
	// Time is when the snapshot was taken. It is the only clock the planner knows.
	Time time.Time
	// Pending are the pods that are bound to no node and not terminal.
	Pending []*Pod
	// Nodes are all Nodes and NodeClaims; a claim and its Node are one entry. They hold the pods bound to them.
	Nodes []*Node
	// NodePools are all NodePools.
	NodePools []*karpv1.NodePool
	// Pauses are what people have paused in the whole cluster. What is paused for a NodePool is in its annotations.
	Pauses []karpv1.Pause
	// Windows are the maintenance windows of the whole cluster. Those of a NodePool are in its annotations.
	Windows karpv1.MaintenanceWindows
	// DaemonSets are all DaemonSets.
	DaemonSets []*DaemonSet
	// DisruptionBudgets are all PodDisruptionBudgets.
	DisruptionBudgets []*DisruptionBudget
	// Namespaces are the labels of all namespaces, by name. Affinity between pods selects namespaces by them.
	Namespaces map[string]map[string]string
	// LabelKeys are the provider's keys of labels.
	LabelKeys cloud.LabelKeys
	// Storage holds the volumes, their claims and the StorageClasses.
	Storage Storage
	// Devices holds what is known of dynamic resource allocation; nil while its feature gate is off.
	Devices *Devices
}

// Stopped says what stops a kind of work for a NodePool, which may be nil, at the snapshot's time; nil if nothing does.
func (s *Snapshot) Stopped(scope karpv1.PauseScope, pool *karpv1.NodePool) *karpv1.Stop {
	return karpv1.StopOf(scope, s.Pauses, pool, s.Time)
}

// Closed says why a NodePool's nodes are not removed for a reason at the snapshot's time: a person has paused that, or no
// maintenance window is open; nil if they may be removed.
func (s *Snapshot) Closed(reason karpv1.DisruptionReason, pool *karpv1.NodePool) *karpv1.Stop {
	if stop := s.Stopped(karpv1.PauseDisruption, pool); stop != nil {
		return stop
	}
	return s.Windows.Stop(reason, pool, s.Time)
}

// Input is everything that Pack and Disrupt know.
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
	// Nominates says that the kube-scheduler will be told the node of each pod, and so follows the plan.
	Nominates bool
	// Without names a strategy that Pack leaves out, to measure what it is worth; empty means none.
	Without string
	// Growth is the growth of pods that still wait although nodes came up for them. Disrupt does not read it.
	Growth map[types.UID]Growth
	// SpotToSpot says that Disrupt may replace spot nodes with cheaper spot nodes. Pack does not read it.
	SpotToSpot bool
	// Held are nodes that Disrupt leaves alone for a while, by Key. Pack does not read it.
	Held map[string]Hold
	// Settling are the NodePools in which Disrupt starts nothing: pods that were moved are not Ready yet, and the pool asks
	// to wait for them (annotation tenon.sh/wait-for-ready).
	Settling map[string]bool
	// Targets identify what the nodes of NodePools with a rollout are made from now, by NodePool; empty where that is not
	// known. Nil means that nobody has looked. Pack does not read it.
	Targets map[string]string
	// Begun are the nodes whose disruption began recently, by NodePool. Rate limits how many disruptions may begin in the
	// whole cluster; nil means no limit.
	Begun map[string][]karpv1.Begun
	Rate  *karpv1.DisruptionRate
	// Proposing has Disrupt decide as if everything were approved that nobody has rejected: people are asked to approve what
	// it then decides. Pack does not read it.
	Proposing bool
	// Budgets limit how many nodes of all NodePools together may be disrupted at once.
	Budgets []karpv1.Budget
}

// Hold keeps a node from being disrupted for any reason until a given time.
type Hold struct {
	Until time.Time
	// Why is one sentence for people.
	Why string
}

// Pool is a NodePool and what can be launched for its node class.
type Pool struct {
	NodePool *karpv1.NodePool
	Types    []*cloud.InstanceType
	// Excluded is what the node class keeps nodes from having. Only reasons name it.
	Excluded []cloud.Exclusion
	// Problem says why Types could not be determined; empty if they could.
	Problem string
	// NodePrice is what a node costs besides its instance, in US dollars per hour: its root volume, and whatever else the
	// operator counts.
	NodePrice float64
	// Packing decides between plans of almost equal cost; empty means PackingSpread.
	Packing Packing
}

// Packing decides between plans of almost equal cost.
type Packing string

// The ways to pack.
const (
	// PackingSpread lets no node carry more than a third of a workload or of a batch, and no spot pool (instance type and
	// zone) more than a third of a workload, where that costs almost nothing.
	PackingSpread Packing = karpv1.PackingSpread
	// PackingCheapest takes the cheapest plan, however few nodes it depends on.
	PackingCheapest Packing = karpv1.PackingCheapest
)

// Valid says whether p is a known way to pack.
func (p Packing) Valid() bool { return p == PackingSpread || p == PackingCheapest }

// For returns how to pack the pods of a NodePool: as its annotation tenon.sh/packing says, or as p if the annotation is
// missing or invalid.
func (p Packing) For(pool *karpv1.NodePool) Packing {
	if own, err := pool.Packing(); err == nil && own != "" {
		return Packing(own)
	}
	return p
}

// PreferencePolicy says how the planner treats preferences: preferred terms of affinity, spread with ScheduleAnyway and
// taints with PreferNoSchedule.
type PreferencePolicy string

// The policies.
const (
	// PreferencesRespect treats preferences as requirements. Where a pod would otherwise get no node, it drops them one by
	// one, in the order of Karpenter.
	PreferencesRespect PreferencePolicy = "Respect"
	// PreferencesIgnore leaves preferences to the kube-scheduler.
	PreferencesIgnore PreferencePolicy = "Ignore"
)
