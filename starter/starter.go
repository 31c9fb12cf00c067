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

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/starter/status"
	"github.com/tenon-sh/tenon/workflows"
)

// Config is what the edges of a cluster work with.
type Config struct {
	Cluster workflows.Cluster
	// ClusterUID tells the cluster from another one of its name.
	ClusterUID string
	Mirror     Mirror
	Kube       kube.Client
	Temporal   client.Client
	Log        *zap.Logger
	// Events records Kubernetes Events; nil records none.
	Events record.EventRecorder
	// Disrupt says what may be taken away now.
	Disrupt func(ctx context.Context, snapshot *plan.Snapshot) plan.Disruption
	// Close keeps new pods off a Node that the cloud takes away.
	Close func(ctx context.Context, node *corev1.Node) error
	// SweepEvery is how often the sweep runs while anything that it compares changes.
	SweepEvery time.Duration
	// Instances are the cloud's.
	Instances func(context.Context, cloud.Query) ([]cloud.Instance, error)
	// Interruptions is where the cloud announces that instances go; nil where it does not.
	Interruptions Interruptions
	// Metrics counts what it announces; nil counts nothing.
	Metrics *InterruptionMetrics
	// ReplacesAtRisk has nodes replaced of which the cloud says that it may take them back soon.
	ReplacesAtRisk bool
	// RepairPolicies say which nodes will not recover and are ended; without any, none is.
	RepairPolicies []cloud.RepairPolicy
}

// edges are all edges of one cluster.
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
	// told is what was told of claims and Nodes that change.
	told *dedup
}

// newEdges returns the edges of a cluster, each with what it needs.
func newEdges(c Config) *edges {
	e := &edges{config: c, workflows: &signaller{temporal: c.Temporal, cluster: c.Cluster, clusterUID: c.ClusterUID}, told: &dedup{}}
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
	e.repairs = &repairs{mirror: c.Mirror, workflows: e.workflows, policies: c.RepairPolicies, events: c.Events, log: c.Log}
	e.expirations = &expirations{mirror: c.Mirror, workflows: e.workflows, log: c.Log}
	e.sweep = &sweep{temporal: c.Temporal, cluster: c.Cluster, every: c.SweepEvery, log: c.Log,
		compared: &compared{instances: c.Instances, mirror: c.Mirror, temporal: c.Temporal, cluster: c.Cluster}}
	return e
}

func newDrains(c Config, workflows *signaller) *drains {
	return &drains{mirror: c.Mirror, workflows: workflows, told: blockedDrains{}, log: c.Log}
}

// Run watches a cluster for its workflows until ctx ends. It is to be called by the holder of the Lease only.
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

// watches are the edges that a cluster has, each as what runs until its context ends.
func (e *edges) watches() []func(context.Context) error {
	all := []func(context.Context) error{
		e.changes.watch, e.provisioning.watchPods, e.provisioning.watchStatic, e.buffers.watch, e.leaving.announce, e.disruption.watch, e.drains.watch,
		e.expirations.watch, e.overdue.watch, e.sweep.keep, e.forgetGone,
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

// forgetGone forgets what was told about objects that no longer exist.
func (e *edges) forgetGone(ctx context.Context) error {
	return forgetGone(ctx, e.config.Mirror, e.config.SweepEvery, e.told, e.interruptions.told, &e.repairs.told, &e.expirations.told, &e.leaving.lost)
}

// WakeBlockedDrains wakes drains that wait because something holds their pods, when it may hold them no longer. It is a part
// of Run, for those who only drain.
func WakeBlockedDrains(ctx context.Context, config Config) error {
	return newDrains(config, &signaller{temporal: config.Temporal, cluster: config.Cluster, clusterUID: config.ClusterUID}).watch(ctx)
}
