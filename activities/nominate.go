package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// nominators is how many pods are nominated at once, and nominationPatience how long one may take: soon after, the
	// kube-scheduler has decided without it.
	nominators         = 32
	nominationPatience = 10 * time.Second
	// nominationsMost bounds how many wait for their turn. What is beyond is left out.
	nominationsMost = 8192
	// expectingMost is how long a node that may take pods is kept closed for nominations, its own and those of nodes that
	// are before it in line. At the usual rate there are four thousand of them in this time.
	expectingMost = 20 * time.Second
	// seenMost is how long a nomination is waited for to come back from the API server, and seenPause the pause between
	// two looks.
	seenMost  = 200 * time.Millisecond
	seenPause = 5 * time.Millisecond
	// versionPause is the pause between two questions for the API server's version.
	versionPause = 5 * time.Second
)

// nominationSince is the first version of Kubernetes where others than the kube-scheduler may nominate nodes, and where
// the API server takes a nomination back when the pod is bound and refuses one for a bound pod
// (https://www.kubernetes.dev/resources/keps/5278/). Earlier ones would show stale nominations for ever.
var nominationSince = apiversion.MajorMinor(1, 35)

// NominatorMirror is what a Nominator sees of the cluster.
type NominatorMirror interface {
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Node(name string) *corev1.Node
	ClaimOfNode(node string) *karpv1.NodeClaim
	Pod(namespace, name string) *cluster.Pod
	// Promised returns the pending pods that this process has planned for a node, named as plan.Node.Key does.
	Promised(key string) []*cluster.Pod
}

// Nominator tells the kube-scheduler on which node planned pods are expected, by status.nominatedNodeName. The
// kube-scheduler then tries that node first and keeps the room there from pods of the same or a lower priority, so that
// what was planned to fit is not spread over other nodes. It is advice: nothing fails for want of it.
//
// The kube-scheduler takes a nomination back whenever it tries the pod and finds no node for it, which happens again and
// again while machines start, and it binds pods some milliseconds after their node opens. So a node that pods of this
// process's plans wait for is registered with a taint of its own (karpv1.ExpectingTaintKey). When all else says that it
// may take pods, these are nominated, and only then the taint goes, in the same write that calls the node initialized
// (join.go). Nodes with startup taints have none: who removes those need not tolerate ours. Their pods, and those of
// nodes that another process brings up, are nominated when the node is seen to become Ready, which may be too late.
//
// Each pod is nominated once, and again only where its node is gone. A nomination is refused, and not missed, where the pod has been bound meanwhile.
type Nominator struct {
	kube    client.Client
	mirror  NominatorMirror
	version func() (*version.Info, error)
	limit   *rate.Limiter
	log     *zap.Logger

	works atomic.Bool
	mu    sync.Mutex
	// told is the node that each pod has been nominated to.
	told  map[types.UID]string
	queue chan nomination
	// turn is held by who opens a node.
	turn chan struct{}
}

type nomination struct {
	pod  *plan.Pod
	node string
}

// NewNominator returns a Nominator that sends at most so many requests per second, and at once, through a client that
// need not limit them itself. It asks for the API server's version when it runs.
func NewNominator(kube client.Client, mirror NominatorMirror, version func() (*version.Info, error), limit *rate.Limiter, log *zap.Logger) *Nominator {
	return &Nominator{kube: kube, mirror: mirror, version: version, limit: limit, log: log,
		told: map[types.UID]string{}, queue: make(chan nomination, nominationsMost), turn: make(chan struct{}, 1)}
}

// Works says whether the API server takes nominations, as far as is known.
func (n *Nominator) Works() bool { return n != nil && n.works.Load() }

// Run follows the nodes until ctx ends.
func (n *Nominator) Run(ctx context.Context) error {
	if !n.supported(ctx) {
		return nil
	}
	n.works.Store(true)
	events := n.mirror.Subscribe(cluster.NodeChanged)
	defer events.Close()
	group, ctx := errgroup.WithContext(ctx)
	for range nominators {
		group.Go(func() error { return n.send(ctx) })
	}
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-events.C:
			}
			for _, event := range events.Take() {
				n.follow(event.Name)
			}
		}
	})
	return group.Wait()
}

// supported asks what the API server is, until it answers.
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
		select {
		case <-ctx.Done():
			return false
		case <-time.After(versionPause):
		}
	}
}

// nominationSupported says whether pods of such an API server may be nominated, and why not.
func nominationSupported(info *version.Info) (ok bool, why string) {
	server, err := apiversion.ParseGeneric(info.GitVersion)
	switch {
	case err != nil:
		return false, fmt.Sprintf("the API server calls its version %q", info.GitVersion)
	case server.LessThan(nominationSince):
		return false, fmt.Sprintf("Kubernetes does that since %s, and this is %s", nominationSince, info.GitVersion)
	}
	return true, ""
}

// follow nominates the pods that were planned for a node, once it is about to take them. A node with our taint is left to
// Open.
func (n *Nominator) follow(name string) {
	node, claim := n.mirror.Node(name), n.mirror.ClaimOfNode(name)
	if node == nil || expecting(node) || !opening(node, claim) {
		return
	}
	for _, pod := range n.mirror.Promised(keyOf(node, claim)) {
		n.tell(pod.Pod, name)
	}
}

// keyOf is what the planner calls a node.
func keyOf(node *corev1.Node, claim *karpv1.NodeClaim) string {
	if claim != nil {
		return claim.Name
	}
	return node.Name
}

// Expects says whether a claim's node is to be kept closed until pods are nominated to it.
func (n *Nominator) Expects(claim *karpv1.NodeClaim) bool {
	return n.Works() && len(claim.Spec.StartupTaints) == 0 && len(n.mirror.Promised(claim.Name)) > 0
}

// Open nominates the pods that were planned for a claim's node, now that nothing but our taint keeps them away, has it
// opened, and returns how many were nominated, and what opening it returned. One node is opened after the other: a pod
// that is tried after it was nominated, and before its node is open, loses the nomination, so this time has to be short.
// It takes a bounded time: what is not nominated by then is left to chance.
func (n *Nominator) Open(ctx context.Context, claim *karpv1.NodeClaim, node string, open func() error) (int, error) {
	if !n.Works() {
		return 0, open()
	}
	limited, stop := context.WithTimeout(ctx, expectingMost)
	defer stop()
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-limited.Done():
		return 0, open()
	}
	pods := n.mirror.Promised(claim.Name)
	taken := make([]bool, len(pods))
	var sending errgroup.Group
	sending.SetLimit(nominators)
	for i, pod := range pods {
		if !n.first(pod.Pod, node) {
			continue
		}
		sending.Go(func() error {
			if err := n.limit.Wait(limited); err != nil {
				return nil // there is no time left
			}
			taken[i] = n.nominate(limited, pod.Pod, node)
			return nil
		})
	}
	_ = sending.Wait()
	count := 0
	for i, pod := range pods {
		if taken[i] {
			count++
			n.awaitSeen(limited, pod.Pod, node)
		}
	}
	return count, open()
}

// awaitSeen waits until the mirror shows a nomination, or that the pod no longer needs one. What this process has seen, the
// kube-scheduler has seen, too, or is about to.
func (n *Nominator) awaitSeen(ctx context.Context, pod *plan.Pod, node string) {
	ctx, stop := context.WithTimeout(ctx, seenMost)
	defer stop()
	for {
		now := n.mirror.Pod(pod.Namespace, pod.Name)
		if now == nil || now.UID != pod.UID || now.Node != "" || now.NominatedNode == node {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(seenPause):
		}
	}
}

// expecting says whether our taint is on the node.
func expecting(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.ExpectingTaintKey })
}

// opening says whether nothing stands between a node and its pods but what Kubernetes takes away when it sees that the
// node is Ready.
func opening(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	if !ready(node) || node.Spec.Unschedulable || !node.DeletionTimestamp.IsZero() {
		return false
	}
	var starting []corev1.Taint
	if claim != nil {
		if !claim.DeletionTimestamp.IsZero() || !registered(node) {
			return false
		}
		starting = claim.Spec.StartupTaints
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key != corev1.TaintNodeNotReady && ephemeral(taint) || taint.Key == karpv1.DisruptedTaintKey ||
			slices.ContainsFunc(starting, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	})
}

// Placed nominates the pods of a plan that fit on nodes which are there and open. Pods of other nodes are nominated when
// those are.
func (n *Nominator) Placed(snapshot *plan.Snapshot, placements []plan.Placement) {
	if !n.Works() {
		return
	}
	n.forget(snapshot.Pending)
	names := map[string]string{}
	for _, node := range snapshot.Nodes {
		if node.Name != "" && node.Initialized && node.Ready {
			names[node.Key()] = node.Name
		}
	}
	for _, placement := range placements {
		if name := names[placement.Node]; name != "" && placement.Pod.Node == "" && !placement.Pod.Virtual {
			n.tell(placement.Pod, name)
		}
	}
}

// forget drops the memory of pods that no longer wait.
func (n *Nominator) forget(pending []*plan.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.told) == 0 {
		return
	}
	kept := make(map[types.UID]string, len(n.told))
	for _, pod := range pending {
		if node, ok := n.told[pod.UID]; ok {
			kept[pod.UID] = node
		}
	}
	n.told = kept
}

// tell has a pod nominated, unless that was done before, and does not wait for it.
func (n *Nominator) tell(pod *plan.Pod, node string) {
	if !n.first(pod, node) {
		return
	}
	select {
	case n.queue <- nomination{pod, node}:
	default:
	}
}

// first says, once, that a pod may be nominated: a second time only when the node it was nominated to is gone.
func (n *Nominator) first(pod *plan.Pod, node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if before := n.told[pod.UID]; pod.NominatedNode == node || before == node || before != "" && n.mirror.Node(before) != nil {
		return false
	}
	n.told[pod.UID] = node
	return true
}

// send writes nominations until ctx ends.
func (n *Nominator) send(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-n.queue:
			if !n.Works() {
				continue
			}
			if err := n.limit.Wait(ctx); err != nil {
				return err
			}
			n.nominate(ctx, next.pod, next.node)
		}
	}
}

// nominate writes one nomination, if the pod still waits, and says whether it was taken.
func (n *Nominator) nominate(ctx context.Context, pod *plan.Pod, node string) bool {
	if now := n.mirror.Pod(pod.Namespace, pod.Name); now == nil || now.UID != pod.UID || now.Node != "" {
		return false
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"nominatedNodeName": node},
	})
	if err != nil {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, nominationPatience)
	defer stop()
	// Nothing but the metadata comes back: it is not looked at.
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = n.kube.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	switch {
	case err == nil:
		n.log.Debug("nominated", zap.String("pod", pod.Key()), zap.String("node", node))
		return true
	case apierrors.IsForbidden(err):
		if n.works.Swap(false) {
			n.log.Warn("pods are no longer nominated to the nodes they are planned for: the worker may not patch pods/status", zap.Error(err))
		}
	default:
		// The pod has been bound, deleted or replaced meanwhile, or the API server has better things to do.
		n.log.Debug("a pod was not nominated", zap.String("pod", pod.Key()), zap.String("node", node), zap.Error(err))
	}
	return false
}
