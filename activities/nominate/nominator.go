// Package nominate tells the kube-scheduler on which node planned pods are expected.
//
// Reading order: version, opening, nominator, write, open.
package nominate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// nominators is how many pods are nominated in parallel, and senders how many of them may be for nodes that are not
	// about to open. Nodes that are have priority.
	nominators = 32
	senders    = 8
	// maxNominations limits the queue of nominations. Further ones are dropped.
	maxNominations = 8192
	// repeatEvery is the interval at which lost nominations are sought. The same pod is nominated again after repeatFirst,
	// and then less and less often, up to maxRepeat.
	repeatEvery = time.Second / 2
	repeatFirst = 5 * time.Second
	maxRepeat   = time.Minute
	// versionPause is the pause between two requests for the API server's version.
	versionPause = 5 * time.Second
)

// Mirror is what a Nominator sees of the cluster.
type Mirror interface {
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Node(name string) *corev1.Node
	ClaimOfNode(node string) *karpv1.NodeClaim
	Pod(namespace, name string) *cluster.Pod
	// Promised returns the pending pods that this process has planned for a node, named as plan.Node.Key does.
	Promised(key string) []*cluster.Pod
}

// Nominator tells the kube-scheduler on which node planned pods are expected, by status.nominatedNodeName. The
// kube-scheduler then tries that node first and keeps the room there from pods of the same or a lower priority, so that
// pods that were planned to fit are not spread over other nodes. It is advice: nothing fails without it.
//
// The kube-scheduler clears a nomination whenever it tries the pod and finds no node for it, which happens again and again
// while instances start, and it binds pods some milliseconds after their node opens. So a node that pods of this process's
// plans wait for is registered with a taint of its own (karpv1.ExpectingTaintKey). When nothing else keeps the pods away,
// they are nominated, and only then is the taint removed, in the same write that marks the node as initialized
// (activities.Activities.Join). Nodes with startup taints do not get the taint, because whatever removes those need not
// tolerate ours. Their pods, and those of nodes that another process brings up, are nominated when the node is seen to
// become Ready, which may be too late.
//
// If the API server is slow, many nodes wait for their turn. Then each node is opened once those of its pods are nominated
// that depend on it (plan.Pod.DependsOnPlace): their room is kept, and the others may fill any room that is left.
//
// A nomination that was late, refused or cleared is repeated, less and less often, while the pod is pending and promised to
// the node, if the pod depends on the node. A pod that another plan had to place elsewhere is nominated there. The API
// server refuses a nomination if the pod has been bound meanwhile; then it is not needed.
type Nominator struct {
	kube    client.Client
	mirror  Mirror
	version func() (*version.Info, error)
	limit   *rate.Limiter
	log     *zap.Logger

	works atomic.Bool
	mu    sync.Mutex
	// told holds the last nomination of each pod.
	told map[types.UID]telling
	// homes holds the open nodes whose pods may have to be nominated again, by the planner's key.
	homes map[string]string
	// average is what the pods of the last plan ask for on average.
	average plan.Resources
	queue   chan nomination
	// turn is held while a node is being opened, and sending by every nomination in flight.
	turn, sending chan struct{}
}

type nomination struct {
	pod  *plan.Pod
	node string
}

// telling records the node to which a pod was nominated, how often, and when it may be nominated again.
type telling struct {
	node  string
	times int
	again time.Time
}

// New returns a Nominator that sends requests at the rate and burst of limit, through a client that need not limit them
// itself. Run asks for the API server's version.
func New(kube client.Client, mirror Mirror, version func() (*version.Info, error), limit *rate.Limiter, log *zap.Logger) *Nominator {
	return &Nominator{kube: kube, mirror: mirror, version: version, limit: limit, log: log,
		told: map[types.UID]telling{}, homes: map[string]string{}, queue: make(chan nomination, maxNominations),
		turn: make(chan struct{}, 1), sending: make(chan struct{}, nominators)}
}

// Works reports whether the API server accepts nominations, as far as is known.
func (n *Nominator) Works() bool { return n != nil && n.works.Load() }

// Run nominates pods until ctx ends. It returns at once if n is nil, or the API server does not support nominations.
func (n *Nominator) Run(ctx context.Context) error {
	if n == nil || !n.supported(ctx) {
		return nil
	}
	n.works.Store(true)
	events := n.mirror.Subscribe(cluster.NodeChanged)
	defer events.Close()
	group, ctx := errgroup.WithContext(ctx)
	for range senders {
		group.Go(func() error { return n.send(ctx) })
	}
	group.Go(func() error {
		again := time.NewTicker(repeatEvery)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-again.C:
				n.repeat()
			case <-events.C:
			}
			for _, event := range events.Take() {
				n.follow(event.Name)
			}
		}
	})
	return group.Wait()
}

// supported reports whether the API server supports nominations. It asks for the version until it gets an answer.
func (n *Nominator) supported(ctx context.Context) bool {
	for {
		info, err := n.version()
		if err == nil {
			ok, why := nominationSupported(info)
			if !ok {
				n.log.Info("pods are not nominated to the nodes they are planned for: " + why)
			}
			return ok
		}
		n.log.Warn("the API server's version is not known yet", zap.Error(err))
		if smithytime.SleepWithContext(ctx, versionPause) != nil {
			return false
		}
	}
}

// follow nominates the pods that were planned for a node, once the node is about to take them. It leaves a node with our
// taint to Open.
func (n *Nominator) follow(name string) {
	node, claim := n.mirror.Node(name), n.mirror.ClaimOfNode(name)
	if node == nil || readiness.Expecting(node) || !opening(node, claim) {
		return
	}
	key := keyOf(node, claim)
	n.mu.Lock()
	before := n.homes[key]
	n.mu.Unlock()
	n.tellOf(key, node, before != name)
}

// repeat renews lost nominations.
func (n *Nominator) repeat() {
	n.mu.Lock()
	homes := maps.Clone(n.homes)
	n.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(homes)) {
		if node := n.mirror.Node(homes[key]); node != nil && n.tellOf(key, node, false) {
			continue
		}
		n.mu.Lock()
		delete(n.homes, key)
		n.mu.Unlock()
	}
}

// tellOf nominates the pods that are promised to a node, all of them or those that depend on it, and reports whether any
// are promised. Once the node is open, the kube-scheduler may have decided about more pods than this process sees: pods
// that would fit elsewhere just as well would only take the room from those that would not.
func (n *Nominator) tellOf(key string, node *corev1.Node, all bool) bool {
	pods, dependent := n.promised(key)
	told := pods
	if !all {
		told = pods[:dependent]
	}
	for _, pod := range told {
		n.tell(pod.Pod, node.Name)
	}
	if len(pods) > 0 {
		n.mu.Lock()
		n.homes[key] = node.Name
		n.mu.Unlock()
	}
	return len(pods) > 0
}

// promised returns the pods that are promised to a node, those that depend on it first, and the number of the latter.
func (n *Nominator) promised(key string) (pods []*cluster.Pod, dependent int) {
	pods = n.mirror.Promised(key)
	if len(pods) == 0 {
		return nil, 0
	}
	n.mu.Lock()
	average := n.average
	n.mu.Unlock()
	depends := func(pod *cluster.Pod) bool { return pod.DependsOnPlace(average) }
	slices.SortStableFunc(pods, func(a, b *cluster.Pod) int {
		switch x, y := depends(a), depends(b); {
		case x == y:
			return cmp.Compare(b.Class.Requests.CPU, a.Class.Requests.CPU)
		case x:
			return -1
		}
		return 1
	})
	if dependent = slices.IndexFunc(pods, func(pod *cluster.Pod) bool { return !depends(pod) }); dependent < 0 {
		dependent = len(pods)
	}
	return pods, dependent
}

// keyOf returns the planner's key of a node.
func keyOf(node *corev1.Node, claim *karpv1.NodeClaim) string {
	if claim != nil {
		return claim.Name
	}
	return node.Name
}

// Placed nominates the pods of a plan that fit on existing open nodes, except those that were promised to these nodes
// before and do not depend on them. Pods of other nodes are nominated when those nodes open.
func (n *Nominator) Placed(snapshot *plan.Snapshot, placements []plan.Placement) {
	if !n.Works() {
		return
	}
	n.forget(snapshot.Pending)
	average := plan.AverageRequest(snapshot.Pending)
	names, kept := map[string]string{}, map[types.UID]string{}
	n.mu.Lock()
	n.average = average
	for _, node := range snapshot.Nodes {
		if node.Name == "" || !node.Initialized || !node.Ready {
			continue
		}
		names[node.Key()] = node.Name
		if len(node.Promised) > 0 {
			n.homes[node.Key()] = node.Name
		}
		for _, uid := range node.Promised {
			kept[uid] = node.Key()
		}
	}
	n.mu.Unlock()
	for _, placement := range placements {
		pod, name := placement.Pod, names[placement.Node]
		if name == "" || pod.Node != "" || pod.Virtual || kept[pod.UID] == placement.Node && !pod.DependsOnPlace(average) {
			continue
		}
		n.tell(pod, name)
	}
}

// forget drops the memory of pods that are no longer pending.
func (n *Nominator) forget(pending []*plan.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.told) == 0 {
		return
	}
	kept := make(map[types.UID]telling, len(n.told))
	for _, pod := range pending {
		if told, ok := n.told[pod.UID]; ok {
			kept[pod.UID] = told
		}
	}
	n.told = kept
}

// tell queues the nomination of a pod, unless the pod is nominated already or was a moment ago. It does not wait.
func (n *Nominator) tell(pod *plan.Pod, node string) {
	if !n.due(pod, node) {
		return
	}
	select {
	case n.queue <- nomination{pod, node}:
	default:
	}
}

// due reports whether a pod has to be nominated now, and records that the caller does so. A pod that was nominated to the
// node before has to wait, longer each time.
func (n *Nominator) due(pod *plan.Pod, node string) bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.told[pod.UID]
	if pod.NominatedNode == node || told.node == node && now.Before(told.again) {
		return false
	}
	if told.node != node {
		told = telling{node: node}
	}
	told.again = now.Add(min(repeatFirst<<min(told.times, 8), maxRepeat))
	told.times++
	n.told[pod.UID] = told
	return true
}
