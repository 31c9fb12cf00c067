// Package activities is every side effect Tenon has on a cluster and on its cloud, each of them once and idempotent.
//
// # Parts
//
// Each part is a type with what it needs and no more, and New puts them together. Some are the activities of one consumer:
// Provisioning has the planner, Launch the launcher and the finder, the life of a NodeClaim the joiner, the drainer, the
// deleter and the terminator, Disruption the evaluator and the remover, a Replacement the replacer, the waiter, the retirer
// and the undoer, Sweep the sweeper, and who asks why the answerer. Others serve several of these: objects and events write
// to the API server, executions ask Temporal, the catalogue knows what can be launched, inputs ask the planner.
//
// # Rules
//
// An activity may be killed at any line and run again, on another machine, while the first one still runs. So each one
// looks at what is there before it acts, names what it means by UID, writes only what is not so already, and keeps
// nothing in memory that the next try would need. What has to be remembered is on the objects themselves: a plan's id
// and a launch group's on the NodeClaims it made, ownership tags on instances, finalizers on what must not vanish.
//
// Decisions are made by package plan over a snapshot of the mirror; reality is read again before anything is taken away.
//
// # Errors
//
// An activity returns an error to be tried again by its policy, or a failure of one of the types named in package
// workflows, which ends the tries and tells the workflow what to do instead. Where the cloud said when to come back,
// the next try waits for that. See failure.go.
//
// # Writes
//
// The API server pays for every write, so a node's whole life is to cost at most thirteen: create the claim; its labels
// and its status after the launch; the Node's registration; the claim's status; the Node's initialized label; the
// claim's status; delete the claim; cordon the Node; delete the Node; the Node's finalizer; the claim's finalizer; and, where the instance
// takes its time to end, the claim's status once more. A pod that
// is nominated to its node (package nominate) costs one more each. Where a NodePool's consolidateAfter is neither zero nor
// Never, the starter writes the claim's status once when the node has been quiet for a while longer, and twice for each
// time its quiet is broken. A replacement costs three more for each node that goes and one for each that comes: marks on
// the Node and its claim, why the Node goes, and the opening of what was kept for its pods.
//
// Reading order: mirror, wording, attend, parallel, failure, objects, change, events, executions, seen, cordon,
// registration, overlaid, catalogue, input, growth, plannedclaim, draft, create, note, explain, plan, instance,
// launch, release, find, reserve, join, blockers, budgets, eviction, drains, nodewatch, volumes, places, pass,
// drainreport, evict, drain, draining, delete, drained, terminate, disruptions, rates, evaluate, remove, begin,
// awaitreplacements, moved, confirm, retire, undo, why, whynode, sweepmetrics, sweeping, sweepcap, sweepworkflows,
// sweeporphans, sweepnodes, sweepmarks, sweepadopt, sweepnames, sweepstuck, sweep, activities.
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
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// Config is what the activities work with.
type Config struct {
	Cluster workflows.Cluster
	// ClusterUID is the UID of the namespace kube-system, which tells the cluster from another one of its name.
	ClusterUID string
	// Kube reads from and writes to the API server itself, without a cache between.
	Kube client.WithWatch
	// Evictions is Kube for drains, with a limit of its own; nil where they share Kube's.
	Evictions client.WithWatch
	Mirror    Mirror
	Cloud     cloud.Provider
	// Temporal is how launches and the sweep find and start workflows.
	Temporal temporal.Client
	// Nominator tells the kube-scheduler where planned pods are expected; nil where nobody does.
	Nominator *nominate.Nominator
	// Growth counts pods that growing pauses for; nil where nobody does.
	Growth *GrowthMetrics
	// Events records Kubernetes Events about nodes and pods.
	Events record.EventRecorder
	Log    *zap.Logger
	// BatchIdle and BatchMost are the window in which pending pods are collected before they are planned.
	BatchIdle, BatchMost time.Duration
	// MinValues is what happens to claims whose pool's minValues cannot be kept.
	MinValues plan.MinValuesPolicy
	// Preferences is what becomes of that which pods prefer but do not require.
	Preferences plan.PreferencePolicy
	// NodePrice is what a node costs beside its machine and its volumes, in US dollars per hour.
	NodePrice float64
	// Packing is how the pods of NodePools are packed that do not say it themselves.
	Packing plan.Packing
	// SweepMost is the share of the nodes that one sweep may end, more than 0 and at most 1; SweepMetrics counts what it
	// does, nil where nobody does.
	SweepMost    float64
	SweepMetrics *SweepMetrics
	// SpotToSpot lets spot nodes be replaced by cheaper spot nodes.
	SpotToSpot bool
	// Rate bounds how many nodes of the cluster begin to be disrupted within a time; nil bounds nothing.
	Rate *karpv1.DisruptionRate
}

// Activities implements workflows.Activities, each of its parts some of them.
type Activities struct {
	*planner
	*evaluator
	*answerer
	*launcher
	*finder
	*joiner
	*drainer
	*deleter
	*terminator
	*remover
	*replacer
	*waiter
	*retirer
	*undoer
	*sweeper
}

var _ workflows.Activities = (*Activities)(nil)

// New returns the activities of one cluster.
func New(config Config) *Activities {
	// What several parts need.
	objects, events, executions := objects{config.Kube}, recorder{config.Events}, executions{config.Temporal}
	mirror, provider, name, log := config.Mirror, config.Cloud, config.Cluster, config.Log
	seen := seen{cluster: name, clusterUID: config.ClusterUID, mirror: mirror, log: log}
	instances := instances{objects: objects, cloud: provider, log: log}
	catalogue := &catalogue{mirror: mirror, cloud: provider, nodePrice: config.NodePrice, packing: config.Packing}
	inputs := &inputs{catalogue: catalogue, nominator: config.Nominator, minValues: config.MinValues, preferences: config.Preferences,
		spotToSpot: config.SpotToSpot, rate: config.Rate}
	keeper := &keeper{cluster: name, objects: objects, executions: executions}
	evaluator := &evaluator{cluster: name, mirror: mirror, seen: seen, inputs: inputs, executions: executions, lately: lately{rate: config.Rate}, log: log}
	remover := &remover{objects: objects, log: log}
	undoer := &undoer{cluster: name, objects: objects, executions: executions, keeper: keeper, events: events, log: log}
	return &Activities{
		planner: &planner{mirror: mirror, seen: seen, inputs: inputs, nominator: config.Nominator, explained: explained{events: events}, metrics: config.Growth,
			creator:   &creator{objects: objects, mirror: mirror, catalogue: catalogue, events: events, log: log},
			batchIdle: config.BatchIdle, batchMost: config.BatchMost, log: log},
		evaluator:  evaluator,
		answerer:   &answerer{mirror: mirror, inputs: inputs, evaluator: evaluator},
		launcher:   &launcher{objects: objects, catalogue: catalogue, cloud: provider, executions: executions, minValues: config.MinValues, events: events, log: log},
		finder:     &finder{cluster: name, objects: objects, mirror: mirror, cloud: provider, executions: executions},
		joiner:     &joiner{objects: objects, mirror: mirror, catalogue: catalogue, instances: instances, keeper: keeper, nominator: config.Nominator, events: events, log: log},
		drainer:    &drainer{drains: newDrains(config), objects: objects, log: log},
		deleter:    &deleter{objects: objects, log: log},
		terminator: &terminator{objects: objects, mirror: mirror, cloud: provider, instances: instances, events: events, log: log},
		remover:    remover,
		replacer:   &replacer{objects: objects, mirror: mirror, catalogue: catalogue, events: events, log: log},
		waiter:     &waiter{objects: objects, mirror: mirror, seen: seen},
		retirer:    &retirer{objects: objects, mirror: mirror, inputs: inputs, remover: remover, keeper: keeper, events: events, log: log},
		undoer:     undoer,
		sweeper: &sweeper{cluster: name, clusterUID: config.ClusterUID, objects: objects, mirror: mirror, cloud: provider, executions: executions, undoer: undoer,
			events: events, share: config.SweepMost, metrics: config.SweepMetrics, log: log},
	}
}

// newDrains returns what runs drains.
func newDrains(config Config) *Drains {
	drains := &Drains{Client: config.Kube, Events: config.Events, Log: config.Log}
	if config.Evictions != nil {
		drains.Client = config.Evictions
	}
	if config.Mirror != nil {
		places := &places{mirror: config.Mirror, preferences: config.Preferences}
		drains.Attached, drains.Elsewhere = config.Mirror.Attached, places.elsewhere
	}
	return drains
}
