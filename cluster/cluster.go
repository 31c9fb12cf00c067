// Package cluster is the live mirror of one Kubernetes cluster, and the source of the immutable snapshots that plan/
// decides over.
//
// # What is kept
//
// A Mirror watches the resources planning and draining need. Each watch is a client-go Reflector that fills a store of
// ours directly (feed): an object is reduced when it is decoded, and nothing else of it is kept. A pod becomes a
// plan.Pod that shares its shape and its labels with all pods like it; Nodes and NodeClaims stay complete API objects,
// without managedFields and image lists, because activities read them too. Pods that have succeeded or failed are not
// mirrored at all: a field selector leaves them with the API server, and a pod that ends is one that goes.
//
// # Snapshots
//
// Snapshot joins Node and NodeClaim by provider id and hangs the bound pods on them. Every joined node is built once
// and reused until it, its claim or its pods change, and the snapshot as a whole is reused until anything changes: its
// cost follows the changes, not the size of the cluster. All of it is guarded by one lock, so that a snapshot is one
// consistent state of everything that was seen.
//
// # Seeing one's own writes
//
// A claim that was just created through the API is announced with Assume and counts from then on. It stops being
// assumed when the watch has passed its resourceVersion: then the watch's word holds, whether that is the claim, a
// newer version of it or its absence. What another replica created is waited for with AwaitClaims.
//
// # Room that is kept free
//
// A CapacityBuffer becomes virtual pods, which wait with the pending ones (resolver.go). The resource is followed where
// the cluster serves it, and what buffers refer to only once one of them refers to its kind (optional.go): until then
// it is not watched, and as good as current.
//
// # Staleness
//
// A watch that is silent says nothing about whether it works. A feed is current while its watch is open; a heartbeat,
// a read of the API server's /readyz on the same connection every few seconds, tells whether the connection the open
// watches live on is alive. Staleness is the age of the oldest of these facts. An idle cluster stays fresh; a
// partition, a dead API server and a hung connection show within one heartbeat and its timeout. Who acts on a snapshot
// asks Fresh first and does nothing when it refuses: stale means fail closed.
//
// # Being told
//
// Subscribe and Await rest on one mechanism: every change publishes small events, a kind and a name, to those who asked
// for that kind or for exactly that event. Events are coalesced and carry no state. Who receives one looks at the
// mirror, so that a late, doubled or merged event never misleads.
//
// Everything a Mirror returns is shared and must not be modified.
//
// # Stores
//
// A Mirror is put together out of stores, one for each subject: the pods, the NodePools, what was promised to places. A
// store keeps its own data, follows its own watch, and answers for its subject: its exported methods are the Mirror's.
// Its other methods are for the stores that come after it, and those that change or read data are called with the lock
// held. The lock, the clock and the events are the same for all (shared). First come the watches and how fresh they
// are; then single objects as they are kept; then what is remembered across objects; then the stores of Nodes, claims
// and pods, which tell all these of changes; last the stores that stand for themselves, and what makes snapshots of all.
//
// Reading order: events, shared, feed, reduce, clients, watches, optional, freshness, pod, machine, promised, places,
// bound_pods, waiting, buffers, promises, overdue, growth, claims, nodes, daemons, pods, origins, resolver, budgets,
// namespaces, pools, overlays, classes, volumes, joined, cluster.
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

	"github.com/tenon-sh/tenon/plan"
)

// Options are what a Mirror needs besides the API server. The zero value works.
type Options struct {
	// Log receives what goes wrong with watches; nil discards it.
	Log *zap.Logger
	// Clock is the time everything is measured by; nil is the real one.
	Clock clock.WithTicker
	// Heartbeat is how often the API server is asked whether it is there; zero means 5 s. One beat may take as long.
	Heartbeat time.Duration
	// AssumeFor bounds how long an assumed claim counts without the watch having passed it; zero means one minute. It
	// only matters when resource versions cannot be compared.
	AssumeFor time.Duration
	// NodeOverlays has NodeOverlays followed, where the cluster serves them.
	NodeOverlays bool
}

// Mirror is the live mirror of one cluster. All methods are safe for concurrent use. What it tells of each subject are the
// methods of the subject's store.
type Mirror struct {
	*shared
	*freshness
	*pods
	*nodes
	*claims
	*pools
	*classes
	*overlays
	*storage
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

// NewMirror returns a mirror of the cluster that the configuration names. It watches nothing until Run.
func NewMirror(config *rest.Config, options Options) (*Mirror, error) {
	clients, err := newClients(config)
	if err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	options = options.complete()
	s := &shared{clock: options.Clock, interner: new(plan.Interner)}
	w := &watches{shared: s, log: options.Log, clients: clients}
	m := &Mirror{shared: s, watches: w,
		freshness: &freshness{shared: s, log: options.Log, heartbeat: options.Heartbeat, clients: clients, watches: w}}
	m.openStores(options)
	if w.err != nil {
		return nil, fmt.Errorf("mirror: %w", w.err)
	}
	return m, nil
}

// complete puts what zero values mean in their place.
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
	m.pools, m.classes = newPools(w), newClasses(w)
	m.daemonSets = newDaemonSets(w, podFeed)
	m.budgets, m.namespaces = newBudgets(w), newNamespaces(w)

	m.places = newPlaces(s)
	m.boundPods = newBoundPods(s, podFeed, nodeFeed, m.places)
	m.waiting, m.buffers = newWaiting(s), newBuffers(s)
	m.storage = newStorage(w, m.places, m.waiting)
	m.promises = newPromises(s, m.places, m.waiting, m.buffers)
	m.overdue = newOverdue(s, m.places)
	m.grown = newGrown(s, nodeFeed, m.places, m.waiting, m.promises)
	openBuffers(w, m.buffers, m.promises)
	m.overlays = newOverlays(w, m.pools.feed, options.NodeOverlays)

	m.claims = (&claims{shared: s, feed: claimFeed, nodes: nodeFeed, places: m.places, promises: m.promises, grown: m.grown,
		overdue: m.overdue, assumed: map[string]assumption{}, assumeFor: options.AssumeFor}).follow()
	m.nodes = (&nodes{shared: s, feed: nodeFeed, places: m.places, boundPods: m.boundPods, promises: m.promises,
		claims: m.claims}).follow()
	m.pods = (&pods{shared: s, feed: podFeed, boundPods: m.boundPods, waiting: m.waiting, promises: m.promises, grown: m.grown,
		daemonSets: m.daemonSets}).follow()
	m.joined = &joined{nodes: nodeFeed, places: m.places, boundPods: m.boundPods, promises: m.promises, overdue: m.overdue,
		storage: m.storage}
}

// Run keeps the mirror up to date until ctx ends, which is not an error. It is called once.
func (m *Mirror) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(klog.NewContext(ctx, zapr.NewLogger(m.watches.log)))
	for _, watched := range m.watches.all {
		group.Go(func() error {
			watched.run(ctx)
			return nil
		})
	}
	group.Go(func() error { return m.beat(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("mirror: %w", err)
	}
	return nil
}

// Snapshot returns the cluster as it was seen last. It says nothing about how long ago that was: see Fresh. Before
// WaitSynced it is incomplete.
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

// build assembles a snapshot out of the nodes that are still valid and those that have to be built again.
func (m *Mirror) build() *plan.Snapshot {
	return &plan.Snapshot{
		Pending:    m.buffers.withPods(m.waiting.list()),
		Nodes:      m.joined.list(),
		DaemonSets: m.daemonSets.list(),
		NodePools:  sorted(m.pools.feed.items),
		Namespaces: m.namespaces.now(),

		DisruptionBudgets: m.budgets.now(),
		Storage:           m.storage.now(),
	}
}
