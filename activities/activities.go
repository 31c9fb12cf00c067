// Package activities implements every side effect that Tenon has on a cluster and its cloud. Each is idempotent and has one
// implementation.
//
// # Parts
//
// Each part is a type that holds only what it needs; New puts them together. Some serve one consumer: Provisioning uses the
// planner; Launch the launcher and the finder; the life of a NodeClaim the joiner, the drainer, the deleter and the
// terminator; Disruption the evaluator and the remover; a Replacement the replacer, the waiter, the retirer and the undoer;
// a ReplacementOrder the orderer; an Approval the approver; Sweep the sweeper. The answerer answers people who ask why. Other
// parts are shared: objects and events write to the API
// server, executions queries Temporal, the catalogue knows what can be launched, and inputs builds the planner's input.
//
// # Rules
//
// An activity may be killed at any line and run again, on another machine, while the first run still continues. So each
// activity checks the current state before it acts, identifies objects by UID, writes only what differs, and keeps nothing
// in memory that the next attempt would need. State that has to survive is on the objects themselves: NodeClaims carry the
// ids of their plan and their launch group, instances carry ownership tags, and objects that must not vanish carry
// finalizers.
//
// Package plan makes decisions over a snapshot of the mirror. Activities read the actual state again before they remove
// anything.
//
// # Errors
//
// An ordinary error makes Temporal retry the activity by its policy. A failure of one of the types named in package
// workflows ends the retries and tells the workflow what to do instead. Where the cloud said when to come back, the next
// attempt waits for that. See failure.go.
//
// # Writes
//
// The API server pays for every write, so a node's whole life costs at most thirteen: create the claim; its labels and its
// status after the launch; the Node's registration; the claim's status; the Node's initialized label; the claim's status;
// delete the claim; cordon the Node; delete the Node; the Node's finalizer; the claim's finalizer; and, where the instance
// is slow to terminate, the claim's status once more. Each pod nominated to the node (package nominate) costs one more.
// Where a NodePool's consolidateAfter is neither zero nor Never, the starter writes the claim's status once when the node
// has been quiet for a while longer than that, and twice each time its quiet is broken. A replacement costs three more
// writes for each node it removes and one for each node it adds: marks on the Node and on its claim, the reason why the
// Node is removed, and opening the node that was reserved for the pods.
//
// Reading order: mirror, wording, metrics, heartbeat, parallel, failure, objects, change, events, executions, seen, stops, cordon,
// registration, overlaid, catalogue, input, growth, plannedclaim, draft, create, note, explain, nominated, plan, instance,
// launch, release, find, reserve, join, blockers, budgets, eviction, drains, nodewatch, volumes, places, pass,
// drainreport, evict, drain, draining, hooks, delete, drained, terminate, disruptions, rates, recall, evaluate, remove, begin,
// awaitreplacements, moved, confirm, retire, undo, planreplacements, approvals, why, whynode, whypods, sweepmetrics, sweeping, sweepcap, sweeplisted,
// sweepworkflows, sweeporphans, sweepnodes, sweepmarks, sweepadopt, sweepnames, sweepreservations, sweepleftovers, sweepstuck, sweep,
// activities.
package activities

import (
	"time"

	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/activities/nominate"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// Config holds what the activities need.
type Config struct {
	Cluster workflows.Cluster
	// ClusterUID is the UID of the namespace kube-system, which distinguishes the cluster from another one of the same
	// name.
	ClusterUID string
	// Kube reads from and writes to the API server directly, without a cache.
	Kube client.WithWatch
	// Evictions is the client for drains, with a rate limit of its own; with nil, drains use Kube.
	Evictions client.WithWatch
	Mirror    Mirror
	Cloud     cloud.Provider
	// Temporal is the client by which launches and the sweep find and start workflows.
	Temporal temporal.Client
	// Nominator tells the kube-scheduler where planned pods are expected; nil disables nominations.
	Nominator *nominate.Nominator
	// Growth counts pods for which launching further nodes is paused; nil disables the metrics.
	Growth *GrowthMetrics
	// Metrics counts what activities do; nil counts nothing.
	Metrics *Metrics
	// Events records Kubernetes Events about nodes and pods.
	Events record.EventRecorder
	// Log is where the parts log, each as its component; nil logs nothing.
	Log *zap.Logger
	// BatchIdle and BatchMost are the window in which pending pods are collected before they are planned.
	BatchIdle, BatchMost time.Duration
	// MinValues decides what happens to claims whose NodePool's minValues cannot be met.
	MinValues plan.MinValuesPolicy
	// Preferences decides how the planner treats what pods prefer but do not require.
	Preferences plan.PreferencePolicy
	// NodePrice is the cost of a node besides its instance and its volumes, in US dollars per hour.
	NodePrice float64
	// Packing is how pods are packed for NodePools that do not specify it themselves.
	Packing plan.Packing
	// SweepMost is the share of the nodes that one sweep may remove, more than 0 and at most 1. SweepMetrics counts what
	// sweeps do; nil disables the metrics.
	SweepMost    float64
	SweepMetrics *SweepMetrics
	// SpotToSpot lets spot nodes be replaced by cheaper spot nodes.
	SpotToSpot bool
	// Hooks runs the hooks of NodePools.
	Hooks HookRunner
	// Windows are the cluster's maintenance windows.
	Windows karpv1.MaintenanceWindows
	// Rate limits how many nodes of the cluster begin to be disrupted within a period; nil means no limit.
	Rate *karpv1.DisruptionRate
	// Budgets limit how many nodes of the cluster are disrupted at once.
	Budgets []karpv1.Budget
}

// Activities implements workflows.Activities; each of its parts implements some of the methods.
type Activities struct {
	*planner
	*evaluator
	*answerer
	*launcher
	*finder
	*joiner
	*drainer
	*hooker
	*deleter
	*terminator
	*remover
	*replacer
	*waiter
	*retirer
	*undoer
	*approver
	*orderer
	*sweeper
}

var _ workflows.Activities = (*Activities)(nil)

// New returns the activities of one cluster.
func New(config Config) *Activities {
	if config.Log == nil {
		config.Log = zap.NewNop()
	}
	// Shared by several parts.
	objects, events, executions := objects{config.Kube}, recorder{config.Events}, executions{config.Temporal}
	mirror, provider, name := config.Mirror, config.Cloud, config.Cluster
	planning, lives, disrupting := config.Log.Named(logs.Planner), config.Log.Named(logs.NodeClaim), config.Log.Named(logs.Disruption)
	seen := seen{cluster: name, clusterUID: config.ClusterUID, mirror: mirror, log: planning}
	instances := instances{objects: objects, cloud: provider, log: lives}
	stops := stops{objects, config.Windows}
	catalogue := &catalogue{mirror: mirror, cloud: provider, nodePrice: config.NodePrice, packing: config.Packing}
	inputs := &inputs{catalogue: catalogue, nominator: config.Nominator, minValues: config.MinValues, preferences: config.Preferences,
		spotToSpot: config.SpotToSpot, rate: config.Rate, budgets: config.Budgets}
	keeper := &keeper{cluster: name, objects: objects, executions: executions}
	evaluator := &evaluator{cluster: name, mirror: mirror, seen: seen, inputs: inputs, executions: executions, lately: lately{rate: config.Rate}, counts: config.Metrics, log: disrupting}
	remover := &remover{objects: objects, stops: stops, counts: config.Metrics, log: disrupting}
	undoer := &undoer{cluster: name, objects: objects, executions: executions, keeper: keeper, events: events, counts: config.Metrics, log: disrupting}
	approver := &approver{objects: objects, mirror: mirror, evaluator: evaluator, events: events, log: disrupting}
	return &Activities{
		planner: &planner{mirror: mirror, seen: seen, inputs: inputs, nominator: config.Nominator, explained: explained{events: events}, metrics: config.Growth, counts: config.Metrics,
			creator:   &creator{objects: objects, mirror: mirror, catalogue: catalogue, events: events, counts: config.Metrics, log: planning},
			batchIdle: config.BatchIdle, batchMost: config.BatchMost, log: planning},
		evaluator:  evaluator,
		answerer:   &answerer{mirror: mirror, inputs: inputs, evaluator: evaluator, plans: make(chan struct{}, answersAtOnce)},
		launcher:   &launcher{objects: objects, catalogue: catalogue, cloud: provider, executions: executions, minValues: config.MinValues, events: events, log: config.Log.Named(logs.Launch)},
		finder:     &finder{cluster: name, objects: objects, mirror: mirror, cloud: provider, executions: executions},
		joiner:     &joiner{objects: objects, mirror: mirror, catalogue: catalogue, instances: instances, keeper: keeper, nominator: config.Nominator, events: events, log: lives},
		drainer:    &drainer{drains: newDrains(config), objects: objects, log: config.Log.Named(logs.Drain)},
		hooker:     &hooker{cluster: name, objects: objects, runner: config.Hooks, events: events, log: config.Log.Named(logs.Drain)},
		deleter:    &deleter{objects: objects, stops: stops, counts: config.Metrics, log: lives},
		terminator: &terminator{objects: objects, mirror: mirror, cloud: provider, instances: instances, events: events, log: lives},
		remover:    remover,
		replacer:   &replacer{objects: objects, stops: stops, mirror: mirror, catalogue: catalogue, events: events, counts: config.Metrics, log: disrupting},
		waiter:     &waiter{objects: objects, mirror: mirror, seen: seen, events: events},
		retirer:    &retirer{objects: objects, stops: stops, mirror: mirror, inputs: inputs, remover: remover, keeper: keeper, events: events, log: disrupting},
		undoer:     undoer,
		orderer:    &orderer{mirror: mirror, seen: seen, inputs: inputs, evaluator: evaluator, log: disrupting},
		approver:   approver,
		sweeper: &sweeper{cluster: name, clusterUID: config.ClusterUID, objects: objects, mirror: mirror, cloud: provider, executions: executions, undoer: undoer, approver: approver,
			catalogue: catalogue, events: events, share: config.SweepMost, metrics: config.SweepMetrics, log: config.Log.Named(logs.Sweep)},
	}
}

// newDrains returns the Drains of the configured cluster.
func newDrains(config Config) *Drains {
	drains := &Drains{Client: config.Kube, Events: config.Events, Log: config.Log.Named(logs.Drain), counts: config.Metrics}
	if config.Evictions != nil {
		drains.Client = config.Evictions
	}
	if config.Mirror != nil {
		places := &places{mirror: config.Mirror, preferences: config.Preferences}
		drains.Attached, drains.Elsewhere = config.Mirror.Attached, places.elsewhere
		drains.Hooked = func(pool string) bool { return hasHooks(config.Mirror.NodePool(pool), karpv1.BeforeDrain) }
	}
	return drains
}
