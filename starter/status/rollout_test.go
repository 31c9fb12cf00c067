package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// rolloutWorld is a NodePool with a rollout whose nodes a test makes up, and a worker's Rollouts.
type rolloutWorld struct {
	t       *testing.T
	client  kube.Client
	keeper  *Rollouts
	class   *awsv1.EC2NodeClass
	nodes   []*plan.Node
	objects map[string]*corev1.Node
	writes  int
	now     time.Time
	events  *record.FakeRecorder
	answer  plan.RolloutAnswer
	metrics *RolloutMetrics
}

func newRolloutWorld(t *testing.T, more map[string]string) *rolloutWorld {
	w := &rolloutWorld{t: t, objects: map[string]*corev1.Node{}, now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)}
	pool := testPool("default")
	pool.Annotations = map[string]string{karpv1.RolloutAnnotationKey: "1,100%"}
	for key, value := range more {
		pool.Annotations[key] = value
	}
	w.client = countingClient(t, pool, &w.writes)
	w.class = &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	w.class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	w.class.Status.AMIs = []awsv1.AMI{{ID: "ami-1", Name: "amazon-eks-node-al2023-x86_64-standard-1.34-v20260101"}}
	w.class.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: metav1.ConditionTrue}}
	var err error
	if w.metrics, err = NewRolloutMetrics(prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// restart begins with a new worker, which remembers nothing.
func (w *rolloutWorld) restart() {
	policies := []cloud.RepairPolicy{{Condition: "KernelReady", Status: corev1.ConditionFalse, Tolerated: time.Hour}}
	w.keeper = NewRollouts(nodeclass.Kind(), w.client, w, policies, zaptest.NewLogger(w.t))
	w.events = record.NewFakeRecorder(100)
	w.keeper.now, w.keeper.Events, w.keeper.Metrics = func() time.Time { return w.now }, w.events, w.metrics
	w.keeper.Query = func(context.Context, string) plan.RolloutAnswer { return w.answer }
}

func (w *rolloutWorld) WaitSynced(context.Context) error                     { return nil }
func (w *rolloutWorld) Fresh(time.Duration) error                            { return nil }
func (w *rolloutWorld) Subscribe(...cluster.EventKind) *cluster.Subscription { return nil }
func (w *rolloutWorld) NodeClass(string) cloud.NodeClass                     { return w.class }
func (w *rolloutWorld) Node(name string) *corev1.Node                        { return w.objects[name] }
func (w *rolloutWorld) NodePools() []*karpv1.NodePool                        { return []*karpv1.NodePool{w.pool()} }
func (w *rolloutWorld) Snapshot() *plan.Snapshot {
	return &plan.Snapshot{Time: w.now, Nodes: w.nodes, NodePools: w.NodePools()}
}
func (w *rolloutWorld) Claim(name string) *karpv1.NodeClaim {
	at := slices.IndexFunc(w.nodes, func(n *plan.Node) bool { return n.Claim == name })
	claim := &karpv1.NodeClaim{}
	claim.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.nodes[at].Created)}}
	return claim
}

func (w *rolloutWorld) pool() *karpv1.NodePool {
	w.t.Helper()
	var pool karpv1.NodePool
	if err := w.client.Get(context.Background(), kube.ObjectKey{Name: "default"}, &pool); err != nil {
		w.t.Fatal(err)
	}
	return &pool
}

// add makes a node that serves.
func (w *rolloutWorld) add(name string) *plan.Node {
	n := &plan.Node{Name: name, Claim: name, Pool: "default", Created: w.now, InitializedAt: w.now, Launched: true, Registered: true, Initialized: true, Ready: true}
	w.nodes = append(w.nodes, n)
	w.objects[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return n
}

// drift has all nodes drift.
func (w *rolloutWorld) drift() {
	for _, n := range w.nodes {
		n.Drifted, n.DriftedAt = true, w.now
	}
}

// is makes a pass after some time and checks the condition, and that another pass writes nothing.
func (w *rolloutWorld) is(after time.Duration, reason, says string) {
	w.t.Helper()
	w.now = w.now.Add(after)
	for pass := range 2 {
		w.writes = 0
		if _, err := w.keeper.pass(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if pass == 1 && w.writes > 0 {
			w.t.Errorf("a pass that finds nothing new writes %d times", w.writes)
		}
	}
	got := w.pool().Condition(karpv1.ConditionTypeRollout)
	if got == nil || got.Reason != reason || !strings.Contains(got.Message, says) {
		w.t.Fatalf("the condition is %+v, want %s: %s", got, reason, says)
	}
}

// said returns the Events since the last call.
func (w *rolloutWorld) said() (all []string) {
	for {
		select {
		case event := <-w.events.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func (w *rolloutWorld) order(what string) {
	w.t.Helper()
	pool := w.pool()
	text, err := json.Marshal(karpv1.RolloutOrder{What: what, At: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.RolloutOrderAnnotationKey, string(text))
	if err := w.client.Update(w.t.Context(), pool); err != nil {
		w.t.Fatal(err)
	}
}

// previous returns the images that people can go back to.
func (w *rolloutWorld) previous() string {
	w.t.Helper()
	targets, err := w.pool().RolloutTargets()
	if err != nil {
		w.t.Fatal(err)
	}
	if targets.Previous == nil {
		return ""
	}
	return fmt.Sprint(targets.Previous.Images[0].ID, " ", strings.Contains(string(targets.Previous.ClassSpec), "al2023@latest"))
}

// newImage has the class choose another image.
func (w *rolloutWorld) newImage(id string) {
	changed := w.class.DeepCopy()
	changed.Status.AMIs[0].ID = id
	w.class = changed
	w.drift()
}

// TestRolloutOutlivesWorkers plays a rollout that stops, with a new worker after each step.
func TestRolloutOutlivesWorkers(t *testing.T) {
	t.Parallel()
	w := newRolloutWorld(t, nil)
	for i := range 4 {
		w.add(fmt.Sprintf("old%d", i))
	}
	w.is(0, karpv1.RolloutComplete, "no node has drifted")
	if said := w.said(); len(said) > 0 {
		t.Errorf("that there is nothing to do is said: %v", said)
	}
	w.is(time.Hour, karpv1.RolloutComplete, "no node has drifted")
	w.newImage("ami-2")
	w.restart()
	w.is(time.Second, karpv1.RolloutProgressing, "step 1 of 2 (1): 0 of 4 nodes are new, 4 have drifted")
	if said := w.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Normal RolloutProgressing step 1") {
		t.Errorf("events %v", said)
	}
	w.restart()
	w.nodes = w.nodes[1:]
	canary := w.add("canary")
	w.is(time.Second, karpv1.RolloutBaking, "is watched until 2026-01-02T04:10:02Z")
	w.restart()
	w.objects["canary"].Status.Conditions = []corev1.NodeCondition{{Type: "KernelReady", Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now)}}
	w.is(9*time.Minute, karpv1.RolloutStopped, "node canary is ill: condition KernelReady is False")
	if said := w.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning RolloutStopped stopped at step 1 of 2 (1)") {
		t.Errorf("events %v", said)
	}
	if step, stopped := testutil.ToFloat64(w.metrics.step.WithLabelValues("default")), testutil.ToFloat64(w.metrics.stopped.WithLabelValues("default")); step != 1 || stopped != 1 {
		t.Errorf("metrics show step %v, stopped %v", step, stopped)
	}
	w.restart()
	w.objects["canary"].Status.Conditions = nil
	w.is(time.Hour, karpv1.RolloutStopped, "node canary is ill")
	if why := w.pool().RolloutStop(); !strings.Contains(why, "node canary is ill") {
		t.Errorf("just before they act, workers read %q", why)
	}
	w.order(karpv1.RolloutResume)
	w.restart()
	w.is(time.Second, karpv1.RolloutBaking, "step 1 of 2")
	w.restart()
	w.is(10*time.Minute, karpv1.RolloutProgressing, "step 2 of 2 (100%)")
	w.nodes = []*plan.Node{canary}
	w.restart()
	w.is(time.Second, karpv1.RolloutBaking, "step 2 of 2")
	w.is(10*time.Minute, karpv1.RolloutComplete, "no node has drifted any more")
	if got := w.previous(); got != "ami-1 true" {
		t.Errorf("people can go back to %q", got)
	}
	if step, stopped := testutil.ToFloat64(w.metrics.step.WithLabelValues("default")), testutil.ToFloat64(w.metrics.stopped.WithLabelValues("default")); step != 0 || stopped != 0 {
		t.Errorf("metrics show step %v, stopped %v", step, stopped)
	}
}

// TestRolloutKeepsTheLastGoodTarget checks what people can go back to after several targets.
func TestRolloutKeepsTheLastGoodTarget(t *testing.T) {
	t.Parallel()
	w := newRolloutWorld(t, nil)
	w.is(0, karpv1.RolloutComplete, "")
	w.add("old0")
	w.add("old1")
	w.is(time.Second, karpv1.RolloutComplete, "")
	w.newImage("ami-2")
	w.is(time.Second, karpv1.RolloutProgressing, "")
	if got := w.previous(); got != "ami-1 true" {
		t.Errorf("nodes were made from %q", got)
	}
	w.newImage("ami-3")
	w.is(time.Hour, karpv1.RolloutProgressing, "step 1")
	if got := w.previous(); got != "ami-1 true" {
		t.Errorf("after two new images, one of which no node was made from, people can go back to %q", got)
	}
	w.newImage("ami-1")
	w.nodes[0].Drifted = false
	w.is(time.Second, karpv1.RolloutProgressing, "going back to what nodes were made from before: 0 of 2 nodes are new, 1 have drifted")
	if state, err := w.pool().RolloutState(); err != nil || !state.Back {
		t.Errorf("state %+v, %v", state, err)
	}
	w.class = w.class.DeepCopy()
	w.class.Generation = 7
	w.is(time.Second, karpv1.RolloutUnknown, "the node class is not ready, or has just changed")
}

// TestRolloutOfPods stops for pods that are not Ready on a new node, also if they are Ready for a moment again and again.
func TestRolloutOfPods(t *testing.T) {
	t.Parallel()
	w := newRolloutWorld(t, map[string]string{karpv1.RolloutReadyWithinAnnotationKey: "3m"})
	w.is(0, karpv1.RolloutComplete, "")
	w.add("old0")
	w.add("old1")
	w.is(time.Minute, karpv1.RolloutComplete, "")
	w.newImage("ami-2")
	w.is(time.Second, karpv1.RolloutProgressing, "")
	n := w.add("canary")
	pod := func(ready bool) {
		n.Pods = []*plan.Pod{{UID: "web", Namespace: "default", Name: "web", Node: "canary", Ready: ready}}
	}
	pod(false)
	w.is(time.Second, karpv1.RolloutBaking, "it waits for pod default/web on new node canary to be Ready")
	pod(true)
	w.is(50*time.Second, karpv1.RolloutBaking, "2 have drifted")
	if message := w.pool().Condition(karpv1.ConditionTypeRollout).Message; strings.Contains(message, "waits") {
		t.Errorf("a pod that has become Ready is waited for: %s", message)
	}
	pod(false)
	w.is(30*time.Second, karpv1.RolloutBaking, "it waits for pod default/web")
	pod(true)
	w.is(10*time.Second, karpv1.RolloutBaking, "it waits for pod default/web")
	if next := w.keeper.look(w.Snapshot()); !next.Equal(w.now.Add(readyFor)) {
		t.Errorf("the next look is at %s, and the pod will have been Ready for a minute at %s", next, w.now.Add(readyFor))
	}
	pod(false)
	w.is(time.Minute+30*time.Second, karpv1.RolloutStopped, "pod default/web on new node canary has not been Ready for 3m0s")
}

// TestRolloutQueryGates has Prometheus decide.
func TestRolloutQueryGates(t *testing.T) {
	t.Parallel()
	w := newRolloutWorld(t, map[string]string{karpv1.RolloutQueryAnnotationKey: "up == 1", karpv1.RolloutBakeAnnotationKey: "1m"})
	w.is(0, karpv1.RolloutComplete, "")
	w.add("old0")
	w.add("old1")
	w.is(time.Minute, karpv1.RolloutComplete, "")
	w.newImage("ami-2")
	w.is(time.Second, karpv1.RolloutProgressing, "")
	w.nodes = w.nodes[1:]
	w.add("canary")
	w.keeper.Query = nil
	w.is(time.Minute, karpv1.RolloutBaking, "")
	w.is(time.Hour, karpv1.RolloutBaking, "the worker does not know where Prometheus is (--prometheus-url)")
	w.restart()
	w.answer = plan.RolloutAnswer{Unknown: "connection refused"}
	w.is(time.Minute, karpv1.RolloutBaking, "cannot be asked: connection refused")
	w.answer = plan.RolloutAnswer{}
	w.is(time.Minute, karpv1.RolloutProgressing, "step 2 of 2")
	w.nodes = w.nodes[1:]
	w.is(time.Minute, karpv1.RolloutBaking, "step 2 of 2")
	w.answer = plan.RolloutAnswer{Failed: "returns no samples"}
	w.is(30*time.Second, karpv1.RolloutStopped, "the query (tenon.sh/rollout-query) returns no samples")
}

// TestRolloutRemoved removes everything when the annotation goes, and says what cannot be read.
func TestRolloutRemoved(t *testing.T) {
	t.Parallel()
	w := newRolloutWorld(t, map[string]string{karpv1.RolloutBakeAnnotationKey: "soon"})
	w.is(0, karpv1.RolloutInvalid, `annotation tenon.sh/rollout-bake: "soon" must be a time`)
	if said := w.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning RolloutInvalid") {
		t.Errorf("events %v", said)
	}
	change := func(edit func(map[string]string)) {
		pool := w.pool()
		edit(pool.Annotations)
		if err := w.client.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	change(func(a map[string]string) { delete(a, karpv1.RolloutBakeAnnotationKey) })
	w.is(0, karpv1.RolloutComplete, "")
	change(func(a map[string]string) { delete(a, karpv1.RolloutAnnotationKey) })
	if _, err := w.keeper.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pool := w.pool(); pool.Condition(karpv1.ConditionTypeRollout) != nil || len(pool.Annotations) > 0 {
		t.Errorf("left are %v and %+v", pool.Annotations, pool.Status.Conditions)
	}
	if shown := testutil.CollectAndCount(w.metrics.step); shown > 0 {
		t.Errorf("%d metrics are left", shown)
	}
}
