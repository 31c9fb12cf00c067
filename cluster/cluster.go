// Package cluster is the live mirror of one Kubernetes cluster, and the source of the immutable snapshots that package
// plan works on.
//
// # What is kept
//
// A Mirror watches the resources that planning and draining need. Each watch is a client-go Reflector that fills a
// store of this package directly (feed): an object is reduced when it is decoded, and the rest of it is dropped. A pod
// becomes a plan.Pod that shares its shape and its labels with all pods like it. Nodes and NodeClaims stay complete API
// objects, without managedFields and image lists, because activities read them too. Pods that have succeeded or failed
// are not mirrored at all: a field selector excludes them, so a pod that ends looks like a pod that was deleted.
//
// # Snapshots
//
// Snapshot joins Node and NodeClaim by provider id and attaches the bound pods. A joined node is built once and reused
// until it, its claim or its pods change; the snapshot as a whole is reused until anything changes. The cost of a
// snapshot therefore depends on the changes, not on the size of the cluster. One lock guards everything, so that a
// snapshot is one consistent state of what has been seen.
//
// # Seeing one's own writes
//
// Assume announces a claim that was just created through the API; the claim counts from then on. It stops being assumed
// when the watch has passed its resourceVersion. From then on the watch is authoritative, whether it shows the claim, a
// newer version of it or its absence. AwaitClaims waits for a claim that another replica has created.
//
// # Spare capacity
//
// A CapacityBuffer becomes virtual pods, which wait with the pending ones (resolver.go). CapacityBuffers are watched
// where the cluster serves them. A kind that buffers may refer to is watched only once a buffer refers to it
// (optional.go); until then it counts as current.
//
// # Devices
//
// With the feature gate DynamicResources, ResourceClaims and their templates, DeviceClasses, ResourceSlices and DeviceTaintRules
// are kept whole (dynamic_resources.go). What drivers published for a node is remembered, by NodePool and instance type, when
// the node is gone: it tells what devices the next node will have.
//
// # Staleness
//
// A silent watch does not tell whether it works. A feed is current while its watch is open. A heartbeat, a read of the
// API server's /readyz every few seconds on the connection that the watches use, tells whether that connection is
// alive. Staleness is the age of the oldest of these facts. An idle cluster stays fresh; a partition, a dead API server
// and a hung connection show within one heartbeat and its timeout. Code that acts on a snapshot first calls Fresh and
// does nothing if that returns an error: a stale mirror fails closed.
//
// # Events
//
// Subscribe and Await share one mechanism: every change publishes small events, each a kind and a name, to the
// subscribers of that kind or of exactly that event. Events are coalesced and carry no state. A subscriber reads the
// mirror instead, so that a late, duplicate or merged event never misleads it.
//
// Everything a Mirror returns is shared and must not be modified.
//
// # Stores
//
// A Mirror is made of stores, one for each subject: the pods, the NodePools, the promises to places. A store keeps its
// own data, follows its own watch, and answers for its subject: its exported methods are the Mirror's. Its other
// methods are for the stores that come after it; those that change or read data are called with the lock held. All
// stores share the lock, the clock and the events (shared). The watches and their freshness come first; then single
// objects as they are kept; then what is remembered across objects; then the stores of Nodes, claims and pods, which
// notify all these of changes; last the independent stores, and what makes snapshots of all.
//
// Reading order: events, shared, feed, reduce, clients, watches, optional, freshness, pod, machine, promised, places,
// bound_pods, waiting, buffers, promises, overdue, growth, claims, nodes, daemons, pods, origins, resolver, budgets,
// namespaces, pools, overlays, pauses, classes, volumes, dynamic_resources, joined, observer, cluster.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// Options configure a Mirror.
type Options struct {
	// Kind describes the node classes.
	Kind cloud.Kind
	// Log receives the failures of watches; nil discards them.
	Log *zap.Logger
	// Clock is the source of time; nil means the real clock.
	Clock clock.WithTicker
	// Heartbeat is the interval at which the Mirror checks that the API server is ready; zero means 5 s. It is also the
	// timeout of one check.
	Heartbeat time.Duration
	// AssumeFor limits how long an assumed claim counts if the watch does not pass it; zero means one minute. It
	// matters only when resource versions cannot be compared.
	AssumeFor time.Duration
	// Windows are the maintenance windows of the whole cluster.
	Windows karpv1.MaintenanceWindows
	// Pauses enables the watch of what is paused in the whole cluster.
	Pauses bool
	// NodeOverlays enables the watch of NodeOverlays, where the cluster serves them.
	NodeOverlays bool
	// DynamicResources enables the watches of what concerns devices that pods claim, where the cluster serves it.
	DynamicResources bool
	// Observer is told of every change; nil means nobody is.
	Observer Observer
}

// Mirror is the live mirror of one cluster. All methods are safe for concurrent use. The methods about a subject are
// those of its store.
type Mirror struct {
	*shared
	*freshness
	*pods
	*nodes
	*claims
	*pools
	*classes
	*overlays
	*pauses
	*storage
	*dynamicResources
	*buffers
	*waiting
	*promises
	*grown
	*overdue

	watches    *watches
	daemonSets *daemonSets
	budgets    *budgets
	namespaces *namespaces
	places     *places
	boundPods  *boundPods
	joined     *joined
}

// NewMirror returns a mirror of the cluster that config names. It watches nothing until Run is called.
func NewMirror(config *rest.Config, options Options) (*Mirror, error) {
	clients, err := newClients(config, options.Kind)
	if err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	options = options.complete()
	s := &shared{clock: options.Clock, interner: new(plan.Interner), labelKeys: options.Kind.Labels}
	w := &watches{shared: s, log: options.Log, clients: clients}
	m := &Mirror{shared: s, watches: w,
		freshness: &freshness{shared: s, log: options.Log, heartbeat: options.Heartbeat, clients: clients, watches: w}}
	m.openStores(options)
	m.observe(options.Observer)
	if w.err != nil {
		return nil, fmt.Errorf("mirror: %w", w.err)
	}
	return m, nil
}

// complete replaces zero values by their defaults.
func (o Options) complete() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 5 * time.Second
	}
	if o.AssumeFor <= 0 {
		o.AssumeFor = time.Minute
	}
	return o
}

// openStores prepares the watches of all resources, and the stores that follow them.
func (m *Mirror) openStores(options Options) {
	s, w := m.shared, m.watches
	podFeed, nodeFeed, claimFeed := openPods(w), openNodes(w), openClaims(w)
	m.pools, m.classes = newPools(w), newClasses(w, options.Kind)
	m.daemonSets = newDaemonSets(w, podFeed)
	m.budgets, m.namespaces = newBudgets(w), newNamespaces(w)

	m.places = newPlaces(s)
	m.boundPods = newBoundPods(s, podFeed, nodeFeed, m.places)
	m.waiting, m.buffers = newWaiting(s), newBuffers(s)
	m.storage = newStorage(w, m.places, m.waiting)
	m.dynamicResources = newDynamicResources(w, nodeFeed, m.pools.feed, m.waiting, options.DynamicResources)
	m.promises = newPromises(s, m.places, m.waiting, m.buffers)
	m.overdue = newOverdue(s, m.places)
	m.grown = newGrown(s, nodeFeed, m.places, m.waiting, m.promises)
	openBuffers(w, m.buffers, m.promises)
	m.overlays = newOverlays(w, m.pools.feed, options.NodeOverlays)
	m.pauses = newPauses(w, options.Pauses, options.Windows, m.pools.feed, claimFeed)

	m.claims = (&claims{shared: s, feed: claimFeed, nodes: nodeFeed, places: m.places, promises: m.promises, grown: m.grown,
		overdue: m.overdue, assumed: map[string]assumption{}, assumeFor: options.AssumeFor}).follow()
	m.nodes = (&nodes{shared: s, feed: nodeFeed, places: m.places, boundPods: m.boundPods, promises: m.promises,
		claims: m.claims}).follow()
	m.pods = (&pods{shared: s, feed: podFeed, boundPods: m.boundPods, waiting: m.waiting, promises: m.promises, grown: m.grown,
		daemonSets: m.daemonSets}).follow()
	m.joined = &joined{nodes: nodeFeed, places: m.places, boundPods: m.boundPods, promises: m.promises, overdue: m.overdue,
		storage: m.storage}
}

// Run keeps the mirror up to date until ctx ends, which is not an error. Call it once.
func (m *Mirror) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(klog.NewContext(ctx, zapr.NewLogger(m.watches.log)))
	for _, watched := range m.watches.all {
		group.Go(func() error {
			watched.run(ctx)
			return nil
		})
	}
	group.Go(func() error {
		m.pauses.announceChanges(ctx)
		return nil
	})
	group.Go(func() error { return m.beat(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("mirror: %w", err)
	}
	return nil
}

// Snapshot returns the cluster as it was last seen. It does not tell how long ago that was: see Fresh. Before
// WaitSynced has returned, it is incomplete.
func (m *Mirror) Snapshot() *plan.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	m.expireAssumptions(now)
	if next := m.overdue.next; m.snapshot == nil || !next.IsZero() && !now.Before(next) {
		m.overdue.judge(now)
		m.snapshot = m.build()
	}
	current := *m.snapshot
	current.Time = now
	return &current
}

// build assembles a snapshot; it rebuilds only the nodes that are no longer valid.
func (m *Mirror) build() *plan.Snapshot {
	return &plan.Snapshot{
		Pending:    m.buffers.withPods(m.waiting.list()),
		Nodes:      m.joined.list(),
		DaemonSets: m.daemonSets.list(),
		NodePools:  sorted(m.pools.feed.items),
		Pauses:     m.pauses.now(),
		Windows:    m.windows,
		Namespaces: m.namespaces.now(),
		LabelKeys:  m.labelKeys,

		DisruptionBudgets: m.budgets.now(),
		Storage:           m.storage.now(),
		Devices:           m.dynamicResources.now(),
	}
}
