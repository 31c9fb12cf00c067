// Package starter is the edge between Kubernetes and Temporal: it turns what is seen in the cluster into the start of a
// workflow or a signal to one.
//
// Every edge is level-triggered. A subscription to the mirror only says that something may have changed; what is then
// done follows from what the mirror shows, and is asked again after every failure, after every restart and whenever
// another replica takes over. Starting a workflow that runs and signalling a fact that is known change nothing, so a
// missed or doubled event costs a delay or an action, never a node.
//
//	pods are pending             → Provisioning is signalled (pods.go)
//	a claim was made by hand     → its Launch is started (claims.go)
//	a claim or Node is deleted   → its NodeClaim workflow is signalled, and started where it is missing (claims.go)
//	a Node is gone undrained     → its NodeClaim workflow is signalled (nodegone.go)
//	a buffer's room is missing   → Provisioning is signalled (buffers.go)
//	a static pool lacks nodes    → Provisioning is signalled (static.go)
//	a node leaves with its pods  → Provisioning is signalled (leaving.go)
//	a blocked drain may go on    → its Drain is signalled (blocked.go)
//	a node is not needed         → Disruption is signalled (disruption.go)
//	an instance is taken away    → its NodeClaim workflow is signalled (interruption.go)
//	a node will not recover      → its NodeClaim workflow is signalled (repair.go)
//	expiry is no longer graceful → the workflows of claims that have expired are signalled (expiration.go)
//	every ten minutes, and two while anything changes → a Schedule starts the Sweep, which finds what all of this has missed (schedule.go, unrest.go)
//
// What only people and kubectl read needs no workflow, and is written by loops beside these: the status of NodePools
// (nodepool.go), EC2NodeClasses (nodeclass.go) and NodeOverlays (nodeoverlay.go), the conditions of NodeClaims (claimconditions.go), and Events about
// nodes that stay (verdicts.go) or are protected otherwise than somebody meant (misprotected.go).
//
// An idle cluster causes no action at all besides the Sweep's schedule: nothing is signalled that a look at the mirror
// says to be pointless.
//
// One replica does this at a time, the holder of a Lease. It is the Lease Karpenter uses, so that the two never act on
// one cluster at once (election.go).
package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// handlers is how many events are handled at once. Each waits some milliseconds for Temporal.
	handlers = 16
	// retryAtMost is the longest pause between two tries of what failed, so that soon after Temporal is back everything is.
	retryAtMost = 10 * time.Second
)

// Mirror is the live view of the cluster that the edges watch.
type Mirror interface {
	WaitSynced(ctx context.Context) error
	Fresh(most time.Duration) error
	Snapshot() *plan.Snapshot
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Claim(name string) *karpv1.NodeClaim
	Claims() []*karpv1.NodeClaim
	ClaimOfNode(name string) *karpv1.NodeClaim
	Node(name string) *corev1.Node
	Nodes() []*corev1.Node
	Buffers() []cluster.Buffer
	ClaimByInstance(id string) *karpv1.NodeClaim
	PodsOnNode(name string) []*cluster.Pod
	Promised(key string) []*cluster.Pod
	// Overdue are the claims whose nodes serve later than is usual in their NodePool.
	Overdue() []*karpv1.NodeClaim
}

// Config is what a starter works with.
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

// Starter watches a cluster for its workflows.
type Starter struct {
	Config
	queue workqueue.TypedRateLimitingInterface[cluster.Event]
	told  told
	// verdicts is what was said of nodes that stay; only watchDisruption uses it.
	verdicts verdicts
	// interruptions are those that claims were told of, shunned the offerings that were taken back.
	interruptions told
	shunned       shunned
	// repairs are the nodes that were ended as unhealthy, or would have been; expired the claims that were ended late.
	repairs, expired told
	leaving          *leaving
	gone             endedLately
	// lost is how many pods of claims that are being deleted were announced as lost with their nodes.
	lost told
}

// New returns a starter; Run does the work.
func New(config Config) *Starter {
	return &Starter{
		Config: config,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cluster.Event](
			200*time.Millisecond, retryAtMost)),
		told: told{}, leaving: newLeaving(),
	}
}

// Run watches until ctx ends. It is to be called by the holder of the Lease only, and at most once.
func (s *Starter) Run(ctx context.Context) error {
	if err := s.Mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("starter: wait for the mirror: %w", err)
	}
	events := s.Mirror.Subscribe(cluster.ClaimChanged, cluster.NodeChanged)
	defer events.Close()
	s.Log.Info("starter runs", zap.String("cluster", string(s.Cluster)))
	for _, claim := range s.Mirror.Claims() {
		s.queue.Add(cluster.Event{Kind: cluster.ClaimChanged, Name: claim.Name})
	}
	for _, node := range s.Mirror.Nodes() {
		s.queue.Add(cluster.Event{Kind: cluster.NodeChanged, Name: node.Name})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.forward(ctx, events) })
	for range handlers {
		group.Go(func() error { s.handle(ctx); return nil })
	}
	group.Go(func() error { return s.watchPods(ctx) })
	group.Go(func() error { return s.watchBuffers(ctx) })
	group.Go(func() error { return s.watchStatic(ctx) })
	group.Go(func() error { return s.watchDisruption(ctx) })
	group.Go(func() error { return s.announceLeaving(ctx) })
	group.Go(func() error { return s.WakeBlockedDrains(ctx) })
	group.Go(func() error { return s.watchExpiration(ctx) })
	group.Go(func() error { return s.watchOverdue(ctx) })
	if len(s.RepairPolicies) > 0 {
		group.Go(func() error { return s.watchRepair(ctx) })
	}
	group.Go(func() error { return s.keepSchedule(ctx) })
	if s.Interruptions != nil {
		group.Go(func() error { return s.checkInstances(ctx) })
		if s.Interruptions.Queue() != "" {
			for range receivers {
				group.Go(func() error { return s.receiveNotices(ctx) })
			}
		}
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("starter: %w", err)
	}
	return nil
}

// forward moves events into the queue, which merges and retries them.
func (s *Starter) forward(ctx context.Context, events *cluster.Subscription) error {
	defer s.queue.ShutDown()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events.C:
			for _, event := range events.Take() {
				s.queue.Add(event)
			}
		}
	}
}

// handle works the queue off. What fails is tried again, ever more slowly.
func (s *Starter) handle(ctx context.Context) {
	for {
		event, done := s.queue.Get()
		if done {
			return
		}
		var again time.Duration
		var err error
		switch event.Kind {
		case cluster.ClaimChanged:
			again, err = s.claimChanged(ctx, event.Name)
		case cluster.NodeChanged:
			err = s.nodeChanged(ctx, event.Name)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			s.Log.Warn("starter will try again", zap.String("event", string(event.Kind)), zap.String("name", event.Name), zap.Error(err))
			s.queue.AddRateLimited(event)
		default:
			s.queue.Forget(event)
			if again > 0 {
				s.queue.AddAfter(event, again)
			}
		}
		s.queue.Done(event)
	}
}

// start starts a workflow unless it runs.
func (s *Starter) start(ctx context.Context, options workflows.Start, workflowType string, input any) error {
	if _, err := s.Temporal.ExecuteWorkflow(ctx, options.Client(), workflowType, input); err != nil {
		var running *serviceerror.WorkflowExecutionAlreadyStarted
		if errors.As(err, &running) {
			return nil
		}
		return fmt.Errorf("start %s: %w", options.ID, err)
	}
	return nil
}

// signal signals a workflow, and starts it first where it does not run.
func (s *Starter) signal(ctx context.Context, options workflows.Start, workflowType string, input any, signal string, fact any) error {
	if _, err := s.Temporal.SignalWithStartWorkflow(ctx, options.ID, signal, fact, options.Client(), workflowType, input); err != nil {
		return fmt.Errorf("signal %s to %s: %w", signal, options.ID, err)
	}
	return nil
}
