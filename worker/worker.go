// Package worker is the process that runs in a cluster: it maintains the mirror, polls the cluster's task queue and runs
// workflows and activities. One replica, the holder of the Lease, also runs the starter.
//
//	         ┌ mirror ───── watches the API server
//	worker ──┼ task queue ─ workflows and activities, any number of replicas
//	         └ Lease ────── starter: edges from Kubernetes to Temporal, and the status of resources; one replica
//
// A worker holds nothing that a crash could lose: decisions are in Temporal's histories, and what was created is in the API
// server and in EC2. It is ready once its mirror is synchronized. It acts only while this deployment holds the Lease and the
// worker hears from the API server (fence.go), and ends when its cluster turns out to be another one of the same name
// (identity.go). Temporal knows its build as a version, and sends work to the leader's (versions.go).
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/activities"
	"github.com/tenon-sh/tenon/activities/nominate"
	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloud/kwok"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/hook"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/starter"
	"github.com/tenon-sh/tenon/starter/status"
	"github.com/tenon-sh/tenon/workflows"
)

// maxMirrorAge is how old the mirror may be for a worker to count as ready.
const maxMirrorAge = 30 * time.Second

// Connections are what a worker is connected to.
type Connections struct {
	Kubernetes *rest.Config
	Temporal   client.Client
	// Server is the server behind Temporal, and Namespace the namespace of both.
	Server    TemporalServer
	Namespace string
	Cloud     cloud.Provider
	// CloudName is the provider's name in metrics: aws or kwok.
	CloudName string
	// Commit is what the program was built from; empty if that is not known.
	Commit string
	// LearnFrom tells the cloud where it can read what registered nodes report; nil if it does not learn from that.
	LearnFrom func(func() []cloud.NodeReport)
	// Interruptions is where the cloud announces that instances are interrupted; nil if it does not.
	Interruptions starter.Interruptions
	// Interceptors wrap every workflow and activity.
	Interceptors []interceptor.WorkerInterceptor
}

// Run runs a worker until ctx ends, or until a part it depends on fails.
func Run(ctx context.Context, config Config, to Connections, log *zap.Logger) error {
	restConfig := rest.CopyConfig(to.Kubernetes)
	restConfig.QPS, restConfig.Burst = config.KubeQPS, config.KubeBurst
	restConfig.UserAgent = "tenon"
	exported := newExported(prometheus.DefaultRegisterer, to.Cloud.Kind(), config.BuildID, to.Commit)
	limits, err := config.limits()
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	mirror, err := cluster.NewMirror(restConfig, cluster.Options{Kind: to.Cloud.Kind(), Log: log.Named(logs.Mirror), Pauses: true, Windows: limits.windows, NodeOverlays: config.FeatureGates.NodeOverlay,
		DynamicResources: config.FeatureGates.DynamicResources, Observer: exported.changes})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if to.LearnFrom != nil {
		to.LearnFrom(func() []cloud.NodeReport { return reportsOf(mirror.Claims(), mirror.Node) })
	}
	lease, err := newFence(mirror.Fresh, prometheus.DefaultRegisterer, log.Named(logs.Worker))
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	lease.observes = config.Observe
	// Everything but the Lease itself is changed through the fence.
	fenced := rest.CopyConfig(restConfig)
	fenced.Wrap(lease.guard)
	to.Cloud = fencedCloud{newCountedCloud(to.Cloud, to.CloudName, exported.set, mirror.ClaimByInstance, mirror.Claims), lease}
	direct, evictions, err := newClients(fenced)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	events, stopEvents, err := recorder(fenced, Scheme())
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer stopEvents()

	name := workflows.Cluster(config.Cluster)
	uid, err := clusterUID(ctx, direct)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	parts, err := newPartMetrics(prometheus.DefaultRegisterer)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	nominator, err := newNominator(config.Nomination, fenced, mirror, log.Named(logs.Planner))
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	hooks, err := hook.New(hook.Allowed{URLs: config.HookURLs, JobNamespaces: config.HookJobNamespaces}, direct)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	acts := activities.New(activities.Config{
		Cluster: name, ClusterUID: uid, Kube: direct, Evictions: evictions, Mirror: mirror, Cloud: to.Cloud, Temporal: to.Temporal, Events: events, Log: log,
		Nominator: nominator, Growth: parts.growth, Metrics: exported.activities(), BatchIdle: config.BatchIdle, BatchMost: config.BatchMost, MinValues: plan.MinValuesPolicy(config.MinValues), Preferences: plan.PreferencePolicy(config.Preferences),
		SweepMost: config.SweepMost, SweepMetrics: parts.sweeps, NodePrice: config.NodePrice, Packing: plan.Packing(config.Packing), SpotToSpot: config.FeatureGates.SpotToSpotConsolidation, Rate: limits.rate, Windows: limits.windows, Budgets: limits.budgets, Hooks: hooks,
	})
	if err := exported.describe(mirror, to.Cloud.Kind(), acts.Pools, acts.Limits); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	reach, err := newReach(to.Server.Ask, prometheus.DefaultRegisterer, log.Named(logs.Temporal))
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	versions, err := newVersions(temporalRouter{to.Temporal, name}, route{name.Deployment(), config.BuildID}, prometheus.DefaultRegisterer, log.Named(logs.Worker))
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return mirror.Run(ctx) })
	group.Go(func() error { return reach.run(ctx) })
	group.Go(func() error { return watchIdentity(ctx, direct, uid) })
	probes := &probes{mirror: mirror, reach: reach}
	group.Go(func() error { return probes.serve(ctx, config.HealthProbeAddress) })
	settled := make(chan struct{})
	group.Go(func() error { return serve(ctx, config.MetricsAddress, metricsHandler(config.EnableProfiling)) })
	group.Go(func() error { return servePage(ctx, config, to, mirror, acts.WhyPods, log.Named(logs.Page)) })
	if config.Observe {
		group.Go(func() error { return observe(ctx, mirror, probes, acts, parts.observations, log.Named(logs.Starter)) })
		return ended(group)
	}
	group.Go(func() error { return trace(ctx, config, mirror, direct, to.Temporal, exported, log) })
	group.Go(func() error { return versions.follow(ctx) })
	group.Go(func() error {
		defer close(settled)
		if err := mirror.WaitSynced(ctx); err != nil {
			return fmt.Errorf("wait for the mirror: %w", err)
		}
		log.Named(logs.Worker).Info("mirror synchronized", zap.Int("nodes", len(mirror.Nodes())), zap.Int("claims", len(mirror.Claims())))
		probes.synced.Store(true)
		if err := reach.await(ctx); err != nil {
			return err
		}
		if err := to.Server.CheckAttributes(ctx, workflows.Attributes()); err != nil {
			return err
		}
		work := func(ctx context.Context, as sdk.DeploymentOptions) error {
			return poll(ctx, name, to, mirror.Claim, acts, as)
		}
		return lease.run(ctx, func(ctx context.Context) error { return act(ctx, nominator, versions, work) })
	})
	group.Go(func() error {
		return lead(ctx, config, restConfig, mirror, lease, versions, exported, settled, starter.Config{Cluster: name, ClusterUID: uid, Mirror: mirror, Kube: direct, Temporal: to.Temporal, Log: log.Named(logs.Starter), Events: events,
			Disrupt: exported.observed(acts.Disrupt), Observe: acts.Observe, Observed: parts.observations, Close: acts.Close, SweepEvery: config.SweepEvery, LabelKeys: to.Cloud.Kind().Labels, Instances: to.Cloud.Instances, Interruptions: to.Interruptions, Metrics: parts.interruptions, Pauses: parts.pauses,
			Propose: acts.Propose, Approvals: parts.approvals,
			ReplacesAtRisk: config.Rebalance == rebalanceReplace, RepairPolicies: repairPolicies(config, to.Cloud), Unhealthy: exported.unhealthy}, to.Cloud, parts.rollouts, log.Named(logs.Status))
	})
	return ended(group)
}

// ended waits for the end of a worker's parts.
func ended(group *errgroup.Group) error {
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// observe says what would be done, until ctx ends. It takes no Lease and polls no task queue, so that whoever holds the Lease
// goes on undisturbed; and the fence lets no write pass.
func observe(ctx context.Context, mirror *cluster.Mirror, probes *probes, acts *activities.Activities, metrics *starter.ObservationMetrics, log *zap.Logger) error {
	if err := mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("wait for the mirror: %w", err)
	}
	probes.synced.Store(true)
	log.Warn("this worker only observes", zap.Error(errObserves))
	observations := starter.Observations{Mirror: mirror, Look: acts.Observe, Everything: true, Metrics: metrics, Log: log}
	return observations.Run(ctx)
}

// newClients returns a client for everything but evictions, and one for those: blocked or urgent drains must not delay the
// creation of claims.
func newClients(config *rest.Config) (direct, evictions kube.WithWatch, err error) {
	if direct, err = kube.NewWithWatch(config, kube.Options{Scheme: Scheme()}); err != nil {
		return nil, nil, fmt.Errorf("make a client of Kubernetes: %w", err)
	}
	if evictions, err = kube.NewWithWatch(config, kube.Options{Scheme: Scheme()}); err != nil {
		return nil, nil, fmt.Errorf("make a client of Kubernetes for evictions: %w", err)
	}
	return direct, evictions, nil
}

// repairPolicies returns the provider's policies if NodeRepair is on.
func repairPolicies(config Config, provider cloud.Provider) []cloud.RepairPolicy {
	if !config.FeatureGates.NodeRepair {
		return nil
	}
	return provider.RepairPolicies()
}

// newNominator returns the nominator of pods, nil if none is wanted. It has a request limit of its own, as high as that of all other requests
// together, so that a burst of pods delays nothing else.
func newNominator(wanted bool, restConfig *rest.Config, mirror *cluster.Mirror, log *zap.Logger) (*nominate.Nominator, error) {
	if !wanted {
		return nil, nil
	}
	limit := rate.NewLimiter(rate.Limit(restConfig.QPS), restConfig.Burst)
	unlimited := rest.CopyConfig(restConfig)
	unlimited.QPS = -1
	direct, err := kube.New(unlimited, kube.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("client for nominations: %w", err)
	}
	versions, err := discovery.NewDiscoveryClientForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("client for the API server's version: %w", err)
	}
	return nominate.New(direct, mirror, versions.ServerVersion, limit, log), nil
}

// act is what a worker does while its deployment holds the Lease: it nominates pods, and works as the version that it is.
func act(ctx context.Context, nominator *nominate.Nominator, versions *versions, work func(context.Context, sdk.DeploymentOptions) error) error {
	acting, ctx := errgroup.WithContext(ctx)
	acting.Go(func() error { return nominator.Run(ctx) })
	acting.Go(func() error { return versions.during(ctx, work) })
	return acting.Wait()
}

// poll runs workflows and activities as a version, or without one, until ctx ends. Activities wait for nodes and drains, so
// there may be thousands at once, each of them a sleeping goroutine.
func poll(ctx context.Context, name workflows.Cluster, to Connections, claim func(string) *karpv1.NodeClaim, acts *activities.Activities, as sdk.DeploymentOptions) error {
	failed := make(chan error, 1)
	w := sdk.New(to.Temporal, name.TaskQueue(), sdk.Options{
		MaxConcurrentActivityExecutionSize: 5000,
		WorkflowTaskPollerBehavior:         sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{}),
		ActivityTaskPollerBehavior:         sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{}),
		MaxHeartbeatThrottleInterval:       5 * time.Second,
		WorkerStopTimeout:                  10 * time.Second,
		// On a busy machine, encoding a large input alone may take a second. A workflow task has ten.
		DeadlockDetectionTimeout: 5 * time.Second,
		Interceptors:             append([]interceptor.WorkerInterceptor{&activityLog{cluster: name, claim: claim}}, to.Interceptors...),
		DeploymentOptions:        as,
		OnFatalError:             func(err error) { failed <- err },
	})
	workflows.Register(w)
	workflows.RegisterActivities(w, acts)
	if err := w.Start(); err != nil {
		return fmt.Errorf("poll task queue %s: %w", name.TaskQueue(), err)
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-failed:
		return fmt.Errorf("poll task queue %s: %w", name.TaskQueue(), err)
	}
}

// lead runs the starter and the loops that write status whenever this replica holds the Lease. A worker that is told to end
// releases the Lease once it has settled, when nothing acts any more.
func lead(ctx context.Context, config Config, restConfig *rest.Config, mirror *cluster.Mirror, fence *fence, versions *versions, exported *exported, settled <-chan struct{}, edges starter.Config, provider cloud.Provider, rolloutMetrics *status.RolloutMetrics, statuses *zap.Logger) error {
	caBundle, err := status.ClusterCA(restConfig)
	if err != nil {
		return err
	}
	query, err := rolloutQuery(config.PrometheusURL)
	if err != nil {
		return err
	}
	kind := provider.Kind()
	lease := starter.Lease{Name: config.LeaseName, Namespace: config.LeaseNamespace, Identity: config.Identity, Held: fence.see,
		Settle: func() { <-settled }}
	for {
		err := starter.Lead(ctx, restConfig, lease, edges.Log, func(ctx context.Context) error {
			exported.leads.Store(true)
			defer exported.leads.Store(false)
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return versions.lead(ctx) })
			group.Go(func() error { return starter.Run(ctx, edges) })
			group.Go(func() error {
				pools := status.NewNodePools(kind, edges.Kube, mirror, statuses)
				pools.Limits = exported.limits
				return pools.Run(ctx)
			})
			group.Go(func() error {
				return status.NewZonalShifts(kind.Labels, mirror, provider.InstanceTypes, edges.Events, statuses).Run(ctx)
			})
			if config.FeatureGates.NodeOverlay {
				group.Go(func() error {
					return status.NewNodeOverlays(kind.Labels, edges.Kube, mirror, provider.InstanceTypes, statuses).Run(ctx)
				})
			}
			group.Go(func() error {
				conditions := status.NewNodeClaims(kind, edges.Kube, mirror, provider, statuses)
				conditions.Events = edges.Events
				return conditions.Run(ctx)
			})
			group.Go(func() error {
				rollouts := status.NewRollouts(kind, edges.Kube, mirror, provider.RepairPolicies(), statuses)
				rollouts.Query, rollouts.Events, rollouts.Metrics = query, edges.Events, rolloutMetrics
				return rollouts.Run(ctx)
			})
			group.Go(func() error {
				return status.NewNodeClasses(kind, mirror, edges.Kube, provider, caBundle, edges.Events, statuses).Run(ctx)
			})
			return group.Wait()
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		edges.Log.Warn("no longer the leader", zap.Error(err))
	}
}

// Scheme returns a scheme with every resource that Tenon reads or writes, and the node classes of all providers.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, nodeclass.Kind().AddToScheme, kwok.Kind().AddToScheme, bufferv1.AddToScheme, karpv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			// Adding fails only for two types of one name, and there are none.
			panic(fmt.Sprintf("scheme: %v", err))
		}
	}
	return scheme
}
