package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	// nominators is how many pods are nominated at once, and senders how many of them are not on nodes that are about to
	// open, which come first. nominationPatience is how long one may take: soon after, the kube-scheduler has decided
	// without it.
	nominators         = 32
	senders            = 8
	nominationPatience = 10 * time.Second
	// nominationsMost bounds how many wait for their turn. What is beyond is left out.
	nominationsMost = 8192
	// expectingMost is how long a node that may take pods is kept closed for nominations, its own and those of nodes that
	// are before it in line. At the usual rate there are four thousand of them in this time. dependentMost is how long it is
	// kept closed for those of its pods that depend on it. Both count from when it became Ready: an activity that is tried
	// again does not begin anew, or nodes would never open where Temporal is too slow for heartbeats. turnLeast is how long
	// each try has all the same.
	expectingMost = time.Minute
	dependentMost = 3 * time.Minute
	turnLeast     = 5 * time.Second
	// persistence is how often a nomination is tried at once that the API server has no time for, and persistencePause the
	// pause after the first try, which doubles.
	persistence      = 5
	persistencePause = 250 * time.Millisecond
	// repeatEvery is how often it is looked for pods whose nomination is lost. The same pod is told of again after
	// repeatFirst, and less and less often, up to repeatMost.
	repeatEvery = time.Second / 2
	repeatFirst = 5 * time.Second
	repeatMost  = time.Minute
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
// Where the API server is slow, many nodes wait for their turn. Then each is opened when those of its pods are nominated
// that depend on it (plan.Pod.DependsOnPlace): their room is kept, and the others may fill any room that is left.
//
// A nomination that was late, refused or taken back is repeated while the pod waits and is promised to the node, less and
// less often, where the pod depends on the node; a pod that another plan had to send elsewhere is nominated there. A nomination is refused, and not missed,
// where the pod has been bound meanwhile.
type Nominator struct {
	kube    client.Client
	mirror  NominatorMirror
	version func() (*version.Info, error)
	limit   *rate.Limiter
	log     *zap.Logger

	works atomic.Bool
	mu    sync.Mutex
	// told is what the kube-scheduler was told last of each pod.
	told map[types.UID]telling
	// homes are the nodes which are open and whose pods may have to be told of again, by what the planner calls them.
	homes map[string]string
	// average is what the pods of the last plan ask for on average.
	average plan.Resources
	queue   chan nomination
	// turn is held by who opens a node, and sending by every nomination on its way.
	turn, sending chan struct{}
}

type nomination struct {
	pod  *plan.Pod
	node string
}

// telling is where a pod was nominated to how often, and when it may be again.
type telling struct {
	node  string
	times int
	again time.Time
}

// NewNominator returns a Nominator that sends at most so many requests per second, and at once, through a client that
// need not limit them itself. It asks for the API server's version when it runs.
func NewNominator(kube client.Client, mirror NominatorMirror, version func() (*version.Info, error), limit *rate.Limiter, log *zap.Logger) *Nominator {
	return &Nominator{kube: kube, mirror: mirror, version: version, limit: limit, log: log,
		told: map[types.UID]telling{}, homes: map[string]string{}, queue: make(chan nomination, nominationsMost),
		turn: make(chan struct{}, 1), sending: make(chan struct{}, nominators)}
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
	key := keyOf(node, claim)
	n.mu.Lock()
	before := n.homes[key]
	n.mu.Unlock()
	n.tellOf(key, node, before != name)
}

// repeat nominates pods once more whose nominations are lost.
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

// tellOf has the pods nominated that are promised to a node and depend on it, or all, and says whether there are any
// promised. Once the node is open, the kube-scheduler may have decided about more pods than anybody sees: those that would
// do as well elsewhere would only take the room from those that would not.
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

// promised are the pods that are promised to a node: first those that depend on it, of which it says how many there are.
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
// A node whose turn does not come in time is opened for those pods that depend on it, and the others are told of when it
// is open. It takes a bounded time: what is not nominated by then is left to chance, and to repeat.
func (n *Nominator) Open(ctx context.Context, claim *karpv1.NodeClaim, of *corev1.Node, open func() error) (int, error) {
	if !n.Works() {
		return 0, open()
	}
	node, now := of.Name, time.Now()
	since := readySince(of, now)
	within := func(most time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, max(since.Add(most).Sub(now), turnLeast))
	}
	limited, stop := within(expectingMost)
	defer stop()
	patient, cease := within(dependentMost)
	defer cease()
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-patient.Done():
		return 0, open()
	}
	pods, dependent := n.promised(claim.Name)
	var told []*plan.Pod
	if limited.Err() == nil {
		told = n.nominateAll(limited, pods[dependent:], node)
	}
	// Those that depend on the node come last, and again if they have lost the nomination meanwhile.
	told = append(told, n.nominateAll(patient, pods[:dependent], node)...)
	seen, stopSeeing := context.WithTimeout(ctx, expectingMost)
	defer stopSeeing()
	for _, pod := range told {
		n.awaitSeen(seen, pod, node)
	}
	n.nominateAll(patient, n.lost(pods[:dependent], node), node)
	if len(pods) > 0 {
		n.mu.Lock()
		n.homes[claim.Name] = node
		n.mu.Unlock()
	}
	return len(told), open()
}

// readySince is when a node became Ready, now where it does not say so.
func readySince(node *corev1.Node, now time.Time) time.Time {
	for _, c := range node.Status.Conditions {
		if at := c.LastTransitionTime.Time; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !at.IsZero() && at.Before(now) {
			return at
		}
	}
	return now
}

// nominateAll nominates pods to a node, and returns those whose nomination was taken.
func (n *Nominator) nominateAll(ctx context.Context, pods []*cluster.Pod, node string) []*plan.Pod {
	taken := make([]*plan.Pod, len(pods))
	var sending errgroup.Group
	sending.SetLimit(nominators)
	for i, pod := range pods {
		if !n.due(pod.Pod, node) {
			continue
		}
		sending.Go(func() error {
			if n.persist(ctx, pod.Pod, node) {
				taken[i] = pod.Pod
			}
			return nil
		})
	}
	_ = sending.Wait()
	return slices.DeleteFunc(taken, func(pod *plan.Pod) bool { return pod == nil })
}

// lost are the pods that were told of a moment ago, and whose nominations were taken back since.
func (n *Nominator) lost(pods []*cluster.Pod, node string) []*cluster.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lost []*cluster.Pod
	for _, pod := range pods {
		if now := n.mirror.Pod(pod.Namespace, pod.Name); now != nil && now.UID == pod.UID && now.Node == "" && now.NominatedNode != node {
			delete(n.told, pod.UID)
			lost = append(lost, now)
		}
	}
	return lost
}

// persist nominates a pod, a few times if the API server has no time for it, and says whether it was taken.
func (n *Nominator) persist(ctx context.Context, pod *plan.Pod, node string) bool {
	for try := range persistence {
		taken, again := n.nominate(ctx, pod, node)
		if !again {
			return taken
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(persistencePause << try):
		}
	}
	return false
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

// Placed nominates the pods of a plan that fit on nodes which are there and open, but for those that were promised to them
// before and do not depend on it. Pods of other nodes are nominated when those are.
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

// forget drops the memory of pods that no longer wait.
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

// tell has a pod nominated, unless that is so or was tried a moment ago, and does not wait for it.
func (n *Nominator) tell(pod *plan.Pod, node string) {
	if !n.due(pod, node) {
		return
	}
	select {
	case n.queue <- nomination{pod, node}:
	default:
	}
}

// due says that a pod is to be nominated now, and that somebody does. A pod that was nominated to the node before has to
// wait a while, longer each time.
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
	told.again = now.Add(min(repeatFirst<<min(told.times, 8), repeatMost))
	told.times++
	n.told[pod.UID] = told
	return true
}

// send writes nominations until ctx ends.
func (n *Nominator) send(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-n.queue:
			if n.Works() {
				_, _ = n.nominate(ctx, next.pod, next.node)
			}
		}
	}
}

// nominate writes one nomination, if the pod still waits, and says whether it was taken, and if not whether it is worth
// another try.
func (n *Nominator) nominate(ctx context.Context, pod *plan.Pod, node string) (taken, again bool) {
	if n.limit.Wait(ctx) != nil {
		return false, false // there is no time left
	}
	select {
	case n.sending <- struct{}{}:
		defer func() { <-n.sending }()
	case <-ctx.Done():
		return false, false
	}
	if now := n.mirror.Pod(pod.Namespace, pod.Name); now == nil || now.UID != pod.UID || now.Node != "" {
		return false, false
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"nominatedNodeName": node},
	})
	if err != nil {
		return false, false
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
		return true, false
	case apierrors.IsForbidden(err):
		if n.works.Swap(false) {
			n.log.Warn("pods are no longer nominated to the nodes they are planned for: the worker may not patch pods/status", zap.Error(err))
		}
	default:
		// The pod has been bound, deleted or replaced meanwhile, or the API server has better things to do.
		n.log.Debug("a pod was not nominated", zap.String("pod", pod.Key()), zap.String("node", node), zap.Error(err))
		return false, !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err)
	}
	return false, false
}
