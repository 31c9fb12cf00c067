package nominate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// nominations is a mirror of promised pods, and an API server that records nominations and may refuse them.
type nominations struct {
	nodes    map[string]*corev1.Node
	promised map[string][]*cluster.Pod
	pods     map[string]*cluster.Pod
	refuse   func(pod string) error

	mu   sync.Mutex
	seen []string
}

func (n *nominations) Subscribe(...cluster.EventKind) *cluster.Subscription {
	return &cluster.Subscription{}
}
func (n *nominations) Node(name string) *corev1.Node           { return n.nodes[name] }
func (n *nominations) ClaimOfNode(string) *karpv1.NodeClaim    { return nil }
func (n *nominations) Pod(namespace, name string) *cluster.Pod { return n.pods[namespace+"/"+name] }
func (n *nominations) Promised(key string) []*cluster.Pod      { return n.promised[key] }
func (n *nominations) add(key string, names ...string) *nominations {
	if n.pods == nil {
		n.pods, n.promised, n.nodes = map[string]*cluster.Pod{}, map[string][]*cluster.Pod{}, map[string]*corev1.Node{}
	}
	for _, name := range names {
		pod := &cluster.Pod{Pod: &plan.Pod{UID: types.UID("uid-" + name), Namespace: "default", Name: name, Class: &plan.Class{}}}
		n.pods[pod.Key()] = pod
		n.promised[key] = append(n.promised[key], pod)
	}
	return n
}

func (n *nominations) nominator(t *testing.T) *Nominator {
	t.Helper()
	kube := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, sub string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			data, err := patch.Data(object)
			if err != nil {
				return err
			}
			var body struct {
				Metadata struct{ UID string }
				Status   struct{ NominatedNodeName string }
			}
			if err := json.Unmarshal(data, &body); err != nil {
				return err
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			n.seen = append(n.seen, strings.Join([]string{sub, object.GetNamespace(), object.GetName(), body.Metadata.UID, body.Status.NominatedNodeName}, " "))
			if n.refuse != nil {
				return n.refuse(object.GetName())
			}
			return nil
		},
	})
	nominator := New(kube, n, nil, rate.NewLimiter(rate.Inf, 0), zap.NewNop())
	nominator.works.Store(true)
	return nominator
}

func (n *nominations) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.seen = nil }()
	slices.Sort(n.seen)
	return n.seen
}

func claimNamed(name string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect}
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// TestATurnIsNotWaitedForAnew has a node wait for its turn in attempts that end early, as they do when Temporal loses
// heartbeats: the node opens when it has been Ready for the longest permitted time, not that long after each attempt.
func TestATurnIsNotWaitedForAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nominator := (&nominations{}).add("claim", "a").nominator(t)
		nominator.turn <- struct{}{} // another node holds the turn for ever
		node, began := nodeNamed("node"), time.Now()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(began)}}
		opened := false
		for try := 1; !opened && try <= 10; try++ {
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			_, _ = nominator.Open(ctx, claimNamed("claim"), node, func() error { opened = ctx.Err() == nil; return ctx.Err() })
			stop()
		}
		if took := time.Since(began); !opened || took > maxDependent+minTurn {
			t.Errorf("opened %t, %s after it was Ready", opened, took)
		}
	})
}

func TestOpenNominates(t *testing.T) {
	t.Parallel()
	world := (&nominations{}).add("claim-1", "a", "b", "c").add("claim-2", "a")
	world.nodes["node-1"] = &corev1.Node{}
	world.pods["default/b"] = &cluster.Pod{Pod: &plan.Pod{UID: "uid-b", Namespace: "default", Name: "b", Node: "other"}}
	nominator := world.nominator(t)
	opened := 0
	opens := func(claim, node string) int {
		t.Helper()
		before := opened
		got, err := nominator.Open(t.Context(), claimNamed(claim), nodeNamed(node), func() error { opened++; return nil })
		if err != nil || opened != before+1 {
			t.Errorf("%s was opened %d times, and %v", node, opened-before, err)
		}
		return got
	}
	if got := opens("claim-1", "node-1"); got != 2 {
		t.Errorf("%d pods are nominated, want 2", got)
	}
	want := []string{"status default a uid-a node-1", "status default c uid-c node-1"}
	if diff := cmp.Diff(want, world.taken()); diff != "" {
		t.Errorf("every pod that is not bound is nominated, and by its UID (-want +got):\n%s", diff)
	}
	opens("claim-1", "node-1")
	if again := world.taken(); len(again) > 0 {
		t.Errorf("a pod was nominated to its node a second time at once: %v", again)
	}
	opens("claim-2", "node-2")
	if diff := cmp.Diff([]string{"status default a uid-a node-2"}, world.taken()); diff != "" {
		t.Errorf("a pod that had to be planned for another node is nominated there (-want +got):\n%s", diff)
	}
}

// TestLostNominationsAreRepeated has the kube-scheduler clear nominations, and checks which are repeated.
func TestLostNominationsAreRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := (&nominations{}).add("claim", "alone", "plain")
		world.pods["default/alone"].Class = &plan.Class{HostPorts: []plan.HostPort{{Port: 80}}}
		world.nodes["node"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		nominator := world.nominator(t)
		if _, err := nominator.Open(t.Context(), claimNamed("claim"), nodeNamed("node"), func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		// This API server shows no nomination, as if each were cleared before the node was open.
		if diff := cmp.Diff([]string{"status default alone uid-alone node", "status default alone uid-alone node", "status default plain uid-plain node"}, world.taken()); diff != "" {
			t.Errorf("what depends on the node is nominated again before it opens (-want +got):\n%s", diff)
		}
		repeated := func(over time.Duration) int {
			count := len(nominator.queue)
			for end := time.Now().Add(over); time.Now().Before(end); time.Sleep(repeatEvery) {
				nominator.repeat()
			}
			for range len(nominator.queue) - count {
				if next := <-nominator.queue; next.pod.Name != "alone" || next.node != "node" {
					t.Errorf("%s is nominated to %s again: it does not depend on its node", next.pod.Name, next.node)
				}
				count++
			}
			return count
		}
		if got := repeated(time.Minute); got < 2 || got > 4 {
			t.Errorf("a nomination was repeated %d times in its first minute, want a few", got)
		}
		if got := repeated(10 * time.Minute); got < 8 || got > 11 {
			t.Errorf("a nomination was repeated %d times in ten minutes, want at most one a minute", got)
		}
		delete(world.promised, "claim")
		if nominator.repeat(); len(nominator.homes) > 0 {
			t.Errorf("nodes that no pod is promised to are looked at: %v", nominator.homes)
		}
	})
}

// TestBusyAPIServerIsAskedAgain has an API server that is too busy twice.
func TestBusyAPIServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		world := (&nominations{refuse: func(string) error {
			if tries++; tries <= 2 {
				return apierrors.NewTooManyRequests("busy", 1)
			}
			return nil
		}}).add("claim", "a")
		got, err := world.nominator(t).Open(t.Context(), claimNamed("claim"), nodeNamed("node"), func() error { return nil })
		if got != 1 || err != nil {
			t.Errorf("%d pods are nominated (%v), want the one that was refused twice", got, err)
		}
	})
}

func TestNominationsMayBeRefused(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		reason string
		err    error
		works  bool
	}{
		{reason: "another pod of that name is no reason to stop", err: apierrors.NewConflict(pods, "a", errors.New("UID")), works: true},
		{reason: "nor is one that was bound meanwhile", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), works: true},
		{reason: "nor is a busy API server", err: apierrors.NewTooManyRequests("busy", 1), works: true},
		{reason: "a worker that may not do it does not try for ever", err: apierrors.NewForbidden(pods, "a", errors.New("RBAC")), works: false},
	} {
		world := (&nominations{refuse: func(string) error { return test.err }}).add("claim", "a")
		nominator := world.nominator(t)
		opened := false
		if got, err := nominator.Open(t.Context(), claimNamed("claim"), nodeNamed("node"), func() error { opened = true; return nil }); got != 0 || err != nil || !opened {
			t.Errorf("%s: %d nominations are counted, and the node was opened %t (%v)", test.reason, got, opened, err)
		}
		if nominator.Works() != test.works || nominator.Expects(claimNamed("claim")) != test.works {
			t.Errorf("%s: works %t, want %t", test.reason, nominator.Works(), test.works)
		}
	}
}

func TestNobodyNominates(t *testing.T) {
	t.Parallel()
	var nobody *Nominator
	opened := errors.New("opened")
	if got, err := nobody.Open(t.Context(), claimNamed("claim"), nodeNamed("node"), func() error { return opened }); got != 0 || !errors.Is(err, opened) {
		t.Errorf("nobody has nominated %d pods, and opening a node returned %v", got, err)
	}
	if nobody.Works() || nobody.Expects(claimNamed("claim")) {
		t.Error("there is no nominator, and it says it has nominated")
	}
	nobody.Placed(&plan.Snapshot{}, nil)
}

func TestExpects(t *testing.T) {
	t.Parallel()
	starting := claimNamed("claim")
	starting.Spec.StartupTaints = []corev1.Taint{taint("agent", corev1.TaintEffectNoExecute)}
	nominator := (&nominations{}).add("claim", "a").nominator(t)
	for _, test := range []struct {
		reason string
		claim  *karpv1.NodeClaim
		want   bool
	}{
		{reason: "pods wait for it", claim: claimNamed("claim"), want: true},
		{reason: "nobody waits for it, or another process knows who does", claim: claimNamed("other"), want: false},
		{reason: "who removes a startup taint need not tolerate ours", claim: starting, want: false},
	} {
		if got := nominator.Expects(test.claim); got != test.want {
			t.Errorf("%s: %t, want %t", test.reason, got, test.want)
		}
	}
}

// TestPlacedNominates checks that pods planned onto existing nodes are nominated at once.
func TestPlacedNominates(t *testing.T) {
	t.Parallel()
	world := (&nominations{}).add("", "a", "b", "c", "d", "moved", "virtual")
	nominator := world.nominator(t)
	snapshot := &plan.Snapshot{Nodes: []*plan.Node{
		{Name: "open", Claim: "claim", Registered: true, Initialized: true, Ready: true}, {Name: "starting", Registered: true},
		{Name: "lost", Registered: true, Initialized: true}, {Claim: "coming"}}}
	var placements []plan.Placement
	for pod, node := range map[string]string{"a": "claim", "b": "starting", "c": "lost", "d": "coming", "moved": "claim", "virtual": "claim"} {
		placed := *world.pods["default/"+pod].Pod
		placed.Virtual = pod == "virtual"
		if pod == "moved" {
			placed.Node = "going"
		}
		snapshot.Pending = append(snapshot.Pending, &placed)
		placements = append(placements, plan.Placement{Pod: &placed, Node: node})
	}
	nominator.Placed(snapshot, placements)
	var queued []string
	for len(nominator.queue) > 0 {
		next := <-nominator.queue
		queued = append(queued, next.pod.Name+" "+next.node)
	}
	if diff := cmp.Diff([]string{"a open"}, queued); diff != "" {
		t.Errorf("pods that wait, and whose node may take them now (-want +got):\n%s", diff)
	}
	if nominator.Placed(&plan.Snapshot{}, nil); len(nominator.told) > 0 {
		t.Errorf("pods that no longer wait are remembered: %v", nominator.told)
	}
}

func TestNominationSupported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version string
		want    bool
	}{
		{"v1.36.4", true}, {"v1.35.0", true}, {"v1.35.2-eks-1234567", true}, {"v1.34.9-eks-1234567", false}, {"v1.29.0", false}, {"unknown", false},
	} {
		if got, why := nominationSupported(&version.Info{GitVersion: test.version}); got != test.want || got == (why != "") {
			t.Errorf("%s: %t (%s), want %t", test.version, got, why, test.want)
		}
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	node := func(taints ...corev1.Taint) *corev1.Node {
		n := nodeNamed("node")
		n.Spec.Taints = taints
		n.Labels = map[string]string{karpv1.NodeRegisteredLabelKey: "true"}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return n
	}
	edit := func(n *corev1.Node, change func(*corev1.Node)) *corev1.Node { change(n); return n }
	none := corev1.TaintEffectNoSchedule
	claim := claimNamed("claim")
	claim.Spec.StartupTaints = []corev1.Taint{taint("agent", none)}
	for _, test := range []struct {
		reason string
		node   *corev1.Node
		claim  *karpv1.NodeClaim
		want   bool
	}{
		{reason: "it is Ready", node: node(), claim: claim, want: true},
		{reason: "Kubernetes has not seen yet that it is", node: node(taint(corev1.TaintNodeNotReady, none)), claim: claim, want: true},
		{reason: "a taint of the pool's is for good", node: node(taint("dedicated", none)), claim: claim, want: true},
		{reason: "nobody claimed it", node: edit(node(), func(n *corev1.Node) { n.Labels = nil }), want: true},
		{reason: "it is not Ready", node: nodeNamed("node"), claim: claim, want: false},
		{reason: "it is not registered", node: edit(node(), func(n *corev1.Node) { n.Labels = nil }), claim: claim, want: false},
		{reason: "it is cordoned", node: edit(node(), func(n *corev1.Node) { n.Spec.Unschedulable = true }), claim: claim, want: false},
		{reason: "it is being deleted", node: edit(node(), func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Now()} }),
			claim: claim, want: false},
		{reason: "an agent has still to come up", node: node(taint("agent", none)), claim: claim, want: false},
		{reason: "the cloud has still to say where it is", node: node(taint("node.cloudprovider.kubernetes.io/uninitialized", none)), claim: claim, want: false},
		{reason: "it is disrupted", node: node(taint(karpv1.DisruptedTaintKey, none)), claim: claim, want: false},
	} {
		if got := opening(test.node, test.claim); got != test.want {
			t.Errorf("%s: %t, want %t", test.reason, got, test.want)
		}
	}
}
