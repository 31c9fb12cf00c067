package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/starter/status"
	"github.com/tenon-sh/tenon/workflows"
)

// Config configures the edges of a cluster.
type Config struct {
	Cluster workflows.Cluster
	// ClusterUID distinguishes the cluster from another one with its name.
	ClusterUID string
	Mirror     Mirror
	Kube       kube.Client
	Temporal   client.Client
	Log        *zap.Logger
	// Events records Kubernetes Events; nil records none.
	Events record.EventRecorder
	// Disrupt finds the nodes that may be disrupted now.
	Disrupt func(ctx context.Context, snapshot *plan.Snapshot) plan.Disruption
	// Observe says what would be done now, by NodePool, if no NodePool were only observed; nil where nobody asks.
	Observe func(ctx context.Context, snapshot *plan.Snapshot) map[string]plan.Observation
	// Propose finds for which decisions people have to be asked; nil where nobody is.
	Propose func(ctx context.Context, snapshot *plan.Snapshot) plan.Approvals
	// Close keeps new pods off a Node whose instance the cloud takes back.
	Close func(ctx context.Context, node *corev1.Node) error
	// SweepEvery is the sweep interval while anything that the sweep compares changes.
	SweepEvery time.Duration
	// LabelKeys are the keys of the provider's labels.
	LabelKeys cloud.LabelKeys
	// Instances lists the cloud's instances.
	Instances func(context.Context, cloud.Query) ([]cloud.Instance, error)
	// Interruptions is the source of the cloud's interruption notices; nil where there is none.
	Interruptions Interruptions
	// Metrics counts these notices; nil counts nothing.
	Metrics *InterruptionMetrics
	// Pauses shows what people have paused, and Observed what would be done for observed NodePools; nil shows nothing.
	Pauses   *PauseMetrics
	Observed *ObservationMetrics
	// Approvals shows what waits for a person's approval; nil shows nothing.
	Approvals *ApprovalMetrics
	// ReplacesAtRisk enables the replacement of nodes that the cloud says it may soon take back.
	ReplacesAtRisk bool
	// RepairPolicies say which nodes will not recover and are terminated; without any, none is.
	RepairPolicies []cloud.RepairPolicy
	// Unhealthy is told of each node that is terminated so, and of the condition that shows it; nil if nobody is.
	Unhealthy func(claim *karpv1.NodeClaim, condition corev1.NodeConditionType)
}

// edges are the edges of one cluster.
type edges struct {
	config        Config
	workflows     *signaller
	changes       *changes
	provisioning  *provisioning
	buffers       *buffers
	leaving       *leaving
	drains        *drains
	disruption    *disruption
	interruptions *interruptions
	notices       *notices
	repairs       *repairs
	expirations   *expirations
	overdue       *overdue
	sweep         *sweep
	pauses        *pauses
	// told remembers what was signalled about claims and Nodes that change.
	told *dedup
}

// newEdges returns the edges of a cluster.
func newEdges(c Config) *edges {
	e := &edges{config: c, workflows: &signaller{temporal: c.Temporal, cluster: c.Cluster, clusterUID: c.ClusterUID, labelKeys: c.LabelKeys}, told: &dedup{}}
	queue, interrupted := newQueue(), &dedup{}
	e.provisioning = &provisioning{mirror: c.Mirror, workflows: e.workflows, log: c.Log}
	e.buffers = &buffers{provisioning: e.provisioning, status: status.Buffers{Kube: c.Kube, Log: c.Log}}
	e.leaving = &leaving{mirror: c.Mirror, workflows: e.workflows, log: c.Log, interrupted: interrupted, wake: make(chan struct{}, 1)}
	e.interruptions = &interruptions{mirror: c.Mirror, kube: c.Kube, workflows: e.workflows, events: c.Events, close: c.Close,
		replacesAtRisk: c.ReplacesAtRisk, told: interrupted, queue: queue, log: c.Log}
	e.changes = &changes{mirror: c.Mirror, queue: queue, log: c.Log,
		claims: &claims{
			mirror:        c.Mirror,
			launches:      &launches{mirror: c.Mirror, workflows: e.workflows, told: e.told, log: c.Log},
			interruptions: e.interruptions,
			gone:          &goneNodes{mirror: c.Mirror, kube: c.Kube, workflows: e.workflows, told: e.told, log: c.Log},
			deletions:     &deletions{mirror: c.Mirror, kube: c.Kube, workflows: e.workflows, events: c.Events, leaving: e.leaving, told: e.told},
		},
		nodes: &nodes{mirror: c.Mirror, workflows: e.workflows, told: e.told, queue: queue},
	}
	offerings := &offerings{workflows: e.workflows, interruptions: c.Interruptions, log: c.Log}
	e.notices = &notices{cloud: c.Interruptions, mirror: c.Mirror, interruptions: e.interruptions, offerings: offerings, metrics: c.Metrics, log: c.Log}
	e.overdue = &overdue{mirror: c.Mirror, offerings: offerings, events: c.Events, log: c.Log, told: map[types.UID]bool{}, last: map[cloud.OfferingKey]time.Time{}}
	e.drains = newDrains(c, e.workflows)
	e.disruption = &disruption{mirror: c.Mirror, workflows: e.workflows, find: c.Disrupt, people: newVerdictEvents(c.Mirror, c.Events), log: c.Log}
	e.repairs = &repairs{mirror: c.Mirror, workflows: e.workflows, policies: c.RepairPolicies, counted: c.Unhealthy, events: c.Events, log: c.Log}
	e.expirations = &expirations{mirror: c.Mirror, workflows: e.workflows, log: c.Log}
	e.sweep = &sweep{temporal: c.Temporal, cluster: c.Cluster, every: c.SweepEvery, log: c.Log,
		compared: &compared{instances: c.Instances, mirror: c.Mirror, temporal: c.Temporal, cluster: c.Cluster}}
	e.pauses = &pauses{mirror: c.Mirror, events: c.Events, metrics: c.Pauses}
	return e
}

func newDrains(c Config, workflows *signaller) *drains {
	return &drains{mirror: c.Mirror, workflows: workflows, told: blockedDrains{}, log: c.Log}
}

// Run runs the edges of a cluster until ctx ends. Only the holder of the Lease may call it.
func Run(ctx context.Context, config Config) error {
	if err := config.Mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("starter: wait for the mirror: %w", err)
	}
	config.Log.Info("starter runs", zap.String("cluster", string(config.Cluster)))
	e := newEdges(config)
	group, ctx := errgroup.WithContext(ctx)
	for _, watch := range e.watches() {
		group.Go(func() error { return watch(ctx) })
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("starter: %w", err)
	}
	return nil
}

// watches returns the edges that a cluster has, each as a function that runs until its context ends.
func (e *edges) watches() []func(context.Context) error {
	all := []func(context.Context) error{
		e.changes.watch, e.provisioning.watchPods, e.provisioning.watchStatic, e.buffers.watch, e.leaving.announce, e.disruption.watch, e.drains.watch,
		e.expirations.watch, e.pauses.watch, e.overdue.watch, e.sweep.keep, e.forgetGone,
	}
	if c := e.config; c.Observe != nil {
		all = append(all, (&Observations{Mirror: c.Mirror, Look: c.Observe, Events: c.Events, Metrics: c.Observed, Log: c.Log}).Run)
	}
	if c := e.config; c.Propose != nil {
		all = append(all, (&approvals{mirror: c.Mirror, workflows: e.workflows, find: c.Propose, metrics: c.Approvals, log: c.Log, proposed: sightings{}, outdated: sightings{}}).watch)
	}
	if len(e.config.RepairPolicies) > 0 {
		all = append(all, e.repairs.watch)
	}
	if e.config.Interruptions != nil {
		all = append(all, e.notices.check)
		if e.config.Interruptions.Queue() != "" {
			for range receivers {
				all = append(all, e.notices.receive)
			}
		}
	}
	return all
}

// forgetGone forgets what was signalled about objects that no longer exist.
func (e *edges) forgetGone(ctx context.Context) error {
	return forgetGone(ctx, e.config.Mirror, e.config.SweepEvery, e.told, e.interruptions.told, &e.repairs.told, &e.expirations.told, &e.leaving.lost)
}

// WakeBlockedDrains wakes blocked drains when their pods may be evictable again. It is the part of Run for processes
// that only drain.
func WakeBlockedDrains(ctx context.Context, config Config) error {
	return newDrains(config, &signaller{temporal: config.Temporal, cluster: config.Cluster, clusterUID: config.ClusterUID, labelKeys: config.LabelKeys}).watch(ctx)
}
