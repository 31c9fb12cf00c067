package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/activities/nominate"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// pace sets how slow a town is.
type pace struct {
	// boot is how long a machine takes until its node exists.
	boot time.Duration
	// tries and binds are the numbers of pods that the kube-scheduler tries and binds in a second.
	tries, binds float64
	// patch is how long the API server takes for a nomination; patches is how many it handles at the same time.
	patch   time.Duration
	patches int
	// refused is the share of nominations that the API server refuses.
	refused float64
}

// town is a cluster in which everything is slow. The mirror, the planner and the Nominator are real; the API server,
// the machines and the kube-scheduler are simulated in the virtual time of a synctest bubble.
type town struct {
	t         testing.TB
	pace      pace
	mirror    *cluster.Mirror
	nominator *nominate.Nominator
	pool      plan.Pool
	types     map[string]*cloud.InstanceType
	patching  chan struct{}

	mu     sync.Mutex
	random *rand.Rand
	pods   map[string]*citizen
	houses map[string]*house
	claims map[string]*karpv1.NodeClaim
	// active are the pods that the kube-scheduler is about to try, resting those it tries again later, and binding
	// those it has decided on. Other unbound pods wait for something to change.
	active, resting, binding []*citizen
	bound                    int
	// woken is when all pods were last tried again.
	woken time.Time
	// tally counts events, for people who read a failure.
	tally map[string]int
}

// citizen is a pod.
type citizen struct {
	pod         *corev1.Pod
	cpu, memory int64
	// zone is the zone of its volume, if it has one.
	zone string
	// home is the house that the kube-scheduler has chosen.
	home  *house
	bound bool
	tries int
	// again is when the kube-scheduler may try it next, and queued says that it will.
	again  time.Time
	queued bool
}

// house is a node.
type house struct {
	node              *corev1.Node
	open              bool
	cpu, memory, pods int64
	citizens          map[*citizen]bool
	nominated         map[*citizen]bool
	alone             map[string]int
}

const patience = time.Hour

func newTown(t testing.TB, p pace, pool plan.Pool, pods []*corev1.Pod, zones map[string]string, seed uint64) *town {
	t.Helper()
	mirror, err := cluster.NewMirror(&rest.Config{Host: "http://192.0.2.1"}, cluster.Options{Kind: nodeclass.Kind()})
	if err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, pace: p, mirror: mirror, pool: pool, types: map[string]*cloud.InstanceType{}, patching: make(chan struct{}, p.patches),
		random: rand.New(rand.NewPCG(seed, 7)), pods: map[string]*citizen{}, houses: map[string]*house{}, claims: map[string]*karpv1.NodeClaim{}, tally: map[string]int{}}
	for _, typ := range pool.Types {
		w.types[typ.Name] = typ
	}
	for _, pod := range pods {
		requests := pod.Spec.Containers[0].Resources.Requests
		c := &citizen{pod: pod, cpu: requests.Cpu().MilliValue(), memory: requests.Memory().Value(), zone: zones[pod.Name]}
		w.pods[pod.Name] = c
		w.feed("pods", pod.DeepCopy())
	}
	versionOf := func() (*version.Info, error) { return &version.Info{GitVersion: "v1.35.0"}, nil }
	w.nominator = nominate.New(patcher{town: w}, mirror, versionOf, rate.NewLimiter(200, 300), zap.NewNop())
	return w
}

func (w *town) feed(resource string, object any) {
	if err := cluster.Feed(w.mirror, resource, object); err != nil {
		w.t.Error(err)
	}
}

// live runs until all pods run. It returns how many claims the first plan made, and how many there were in the end;
// none is removed before.
func (w *town) live(ctx context.Context) (first, most int) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { _ = w.nominator.Run(ctx) })
	all.Go(func() { w.schedule(ctx) })
	all.Go(func() { w.bind(ctx) })
	defer all.Wait()
	defer stop()
	until := time.Now().Add(patience)
	synctest.Wait() // the Nominator has asked for the API server's version
	var rhythm rhythm
	for {
		if w.running() == len(w.pods) {
			return first, len(w.claims)
		}
		if time.Now().After(until) {
			w.t.Errorf("%d of %d pods run after %s", w.running(), len(w.pods), patience)
			return first, len(w.claims)
		}
		if rhythm.due(w.mirror.Snapshot()) {
			made := w.plan(ctx, &all)
			if first == 0 {
				first = made
			}
		}
		time.Sleep(time.Second)
	}
}

func (w *town) running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bound
}

// rhythm decides when Provisioning is signalled about waiting pods: at once for new ones, and ever less often for
// others.
type rhythm struct {
	known map[types.UID]bool
	last  time.Time
	pause time.Duration
}

func (r *rhythm) due(snapshot *plan.Snapshot) bool {
	coming := map[types.UID]bool{}
	for _, n := range snapshot.Nodes {
		for _, uid := range n.Promised {
			coming[uid] = coming[uid] || !n.Initialized || snapshot.Time.Sub(n.InitializedAt) < 10*time.Second
		}
	}
	waiting, news := map[types.UID]bool{}, false
	pods, _ := snapshot.WaitingForNode()
	for _, pod := range pods {
		if !coming[pod.UID] {
			waiting[pod.UID] = true
			news = news || !r.known[pod.UID]
		}
	}
	if len(waiting) == 0 || !news && snapshot.Time.Sub(r.last) < r.pause {
		return false
	}
	r.pause = min(2*max(r.pause, 5*time.Second), time.Minute)
	if news {
		r.pause = 10 * time.Second
	}
	r.known, r.last = waiting, snapshot.Time
	return true
}

// plan plans as the activity does, and returns how many claims were made.
func (w *town) plan(ctx context.Context, all *sync.WaitGroup) int {
	snapshot := w.mirror.Snapshot()
	packed := plan.Pack(plan.Input{Snapshot: snapshot, Pools: []plan.Pool{w.pool}, Nominates: w.nominator.Works()})
	time.Sleep(time.Second / 2)
	w.mirror.Planned(packed, snapshot.Time.Add(20*time.Second))
	w.nominator.Placed(snapshot, packed.Placements)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally["plans"]++
	w.tally["unplaced"] += len(packed.Unplaced)
	for i := range packed.Claims {
		name := fmt.Sprintf("claim-%04d", len(w.claims))
		claim, err := packed.Claims[i].NodeClaim(w.pool.NodePool, name)
		if err != nil {
			w.t.Fatal(err)
		}
		claim.UID, claim.CreationTimestamp = types.UID("uid-"+name), metav1.Now()
		w.claims[name] = claim
		w.feed("nodeclaims", claim.DeepCopy())
		w.mirror.Promise(name, packed.Claims[i].Pods, time.Now().Add(15*time.Minute))
		delay := time.Duration(w.random.Int64N(int64(w.pace.boot)/5 + 1))
		zone := packed.Claims[i].Zones[w.random.IntN(len(packed.Claims[i].Zones))]
		all.Go(func() { w.raise(ctx, claim, packed.Claims[i].InstanceTypes[0], zone, delay) })
	}
	return len(packed.Claims)
}

// raise turns a claim into a node that serves.
func (w *town) raise(ctx context.Context, claim *karpv1.NodeClaim, typeName, zone string, delay time.Duration) {
	time.Sleep(2 * time.Second)
	typ := w.types[typeName]
	now := metav1.Now
	for key, value := range typ.Labels {
		claim.Labels[key] = value
	}
	claim.Labels[corev1.LabelTopologyZone], claim.Labels[karpv1.CapacityTypeLabelKey] = zone, karpv1.CapacityTypeOnDemand
	claim.Status.ProviderID = "aws:///" + zone + "/i-" + claim.Name
	claim.Status.Capacity, claim.Status.Allocatable = typ.Capacity, typ.Allocatable
	claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: now()})
	w.feed("nodeclaims", claim.DeepCopy())
	if sleeping(ctx, w.pace.boot+delay) != nil {
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + claim.Name, UID: types.UID("uid-node-" + claim.Name), Labels: map[string]string{
		corev1.LabelHostname: "node-" + claim.Name, karpv1.NodeRegisteredLabelKey: "true"}},
		Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
		Status: corev1.NodeStatus{Capacity: typ.Capacity, Allocatable: typ.Allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: now()}}}}
	for key, value := range claim.Labels {
		node.Labels[key] = value
	}
	if w.nominator.Expects(claim) {
		node.Spec.Taints = []corev1.Taint{karpv1.ExpectingNoScheduleTaint()}
	}
	w.build(node, len(node.Spec.Taints) == 0)
	claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeRegistered, Status: metav1.ConditionTrue, LastTransitionTime: now()})
	w.feed("nodeclaims", claim.DeepCopy())
	if sleeping(ctx, time.Second) != nil {
		return
	}
	told, _ := w.nominator.Open(ctx, claim, node, func() error {
		time.Sleep(w.pace.patch)
		open := node.DeepCopy()
		open.Spec.Taints = nil
		open.Labels[karpv1.NodeInitializedLabelKey] = "true"
		w.build(open, true)
		return nil
	})
	claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue, LastTransitionTime: now()})
	w.feed("nodeclaims", claim.DeepCopy())
	w.mu.Lock()
	defer w.mu.Unlock()
	if told == 0 {
		w.tally["opened without a nomination"]++
	}
}

func sleeping(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// build publishes a node in its present state.
func (w *town) build(node *corev1.Node, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.houses[node.Name]
	if h == nil {
		h = &house{citizens: map[*citizen]bool{}, nominated: map[*citizen]bool{}, alone: map[string]int{}}
		h.cpu, h.memory, h.pods = node.Status.Allocatable.Cpu().MilliValue(), node.Status.Allocatable.Memory().Value(), node.Status.Allocatable.Pods().Value()
		w.houses[node.Name] = h
	}
	h.node, h.open = node, open
	w.feed("nodes", node.DeepCopy())
	w.wake() // any change of a node may help any pod
}

// wake queues all pods that wait for something to change.
func (w *town) wake() {
	for _, c := range w.pods {
		if c.home == nil && !c.queued {
			c.queued = true
			w.resting = append(w.resting, c)
		}
	}
	slices.SortFunc(w.resting, func(a, b *citizen) int { return strings.Compare(a.pod.Name, b.pod.Name) })
	w.woken = time.Now()
}

// schedule simulates the kube-scheduler: it tries one pod after the other, in random order.
func (w *town) schedule(ctx context.Context) {
	pause := time.Duration(float64(time.Second) / w.pace.tries)
	for sleeping(ctx, pause) == nil {
		w.mu.Lock()
		now := time.Now()
		if now.Sub(w.woken) > 5*time.Minute {
			w.wake() // as the kube-scheduler does
		}
		w.resting = slices.DeleteFunc(w.resting, func(c *citizen) bool {
			if !now.Before(c.again) {
				w.active = append(w.active, c)
				return true
			}
			return false
		})
		if n := len(w.active); n > 0 {
			at := w.random.IntN(n)
			c := w.active[at]
			w.active[at] = w.active[n-1]
			w.active = w.active[:n-1]
			c.queued = false
			w.try(c)
		}
		w.mu.Unlock()
	}
}

// try looks for a node for a pod, first where it is nominated. If there is none, it removes the nomination.
func (w *town) try(c *citizen) {
	w.tally["tries"]++
	if h := w.houses[c.pod.Status.NominatedNodeName]; h != nil && w.takes(h, c) {
		w.settle(c, h)
		return
	}
	var best *house
	highest := -1.0
	names := make([]string, 0, len(w.houses))
	for name := range w.houses {
		names = append(names, name)
	}
	slices.Sort(names)
	from := 0
	if len(names) > 0 {
		from = w.random.IntN(len(names))
	}
	for i := range names {
		h := w.houses[names[(from+i)%len(names)]]
		if !w.takes(h, c) {
			continue
		}
		total := h.node.Status.Allocatable
		score := float64(h.cpu-c.cpu)/float64(total.Cpu().MilliValue()) + float64(h.memory-c.memory)/float64(total.Memory().Value())
		if score > highest {
			best, highest = h, score
		}
	}
	if best != nil {
		w.settle(c, best)
		return
	}
	c.again = time.Now().Add(min(10*time.Second, time.Second<<min(c.tries, 4)))
	c.tries++
	if before := w.houses[c.pod.Status.NominatedNodeName]; c.pod.Status.NominatedNodeName != "" {
		w.tally["nominations taken back"]++
		if before != nil {
			delete(before.nominated, c)
		}
		c.pod.Status.NominatedNodeName = ""
		w.feed("pods", c.pod.DeepCopy())
	}
}

// takes says whether a pod fits on a node beside the pods that run there and those that are nominated to it.
func (w *town) takes(h *house, c *citizen) bool {
	if !h.open || c.zone != "" && h.node.Labels[corev1.LabelTopologyZone] != c.zone {
		return false
	}
	cpu, memory, pods := h.cpu, h.memory, h.pods
	alone := h.alone[aloneBy(c)]
	for other := range h.nominated {
		if other != c {
			cpu, memory, pods = cpu-other.cpu, memory-other.memory, pods-1
			if aloneBy(other) == aloneBy(c) {
				alone++
			}
		}
	}
	if c.cpu > cpu || c.memory > memory || pods < 1 {
		return false
	}
	if aloneBy(c) != "" && alone > 0 {
		return false
	}
	return !zonal(c) || w.evens(c, h)
}

// aloneBy names what a node has only once for pods like this one: a host port, or space for a single such pod.
func aloneBy(c *citizen) string {
	for i := range c.pod.Spec.Containers[0].Ports {
		return fmt.Sprint("port ", c.pod.Spec.Containers[0].Ports[i].HostPort)
	}
	if c.pod.Spec.Affinity != nil {
		return c.pod.Labels["app"]
	}
	for i := range c.pod.Spec.TopologySpreadConstraints {
		if c.pod.Spec.TopologySpreadConstraints[i].TopologyKey == corev1.LabelHostname {
			return c.pod.Labels["app"]
		}
	}
	return ""
}

func zonal(c *citizen) bool {
	return slices.ContainsFunc(c.pod.Spec.TopologySpreadConstraints, func(s corev1.TopologySpreadConstraint) bool {
		return s.TopologyKey == corev1.LabelTopologyZone
	})
}

// evens says whether the pods of an app stay evenly spread over the zones that have nodes.
func (w *town) evens(c *citizen, h *house) bool {
	counts := map[string]int{}
	for _, other := range w.houses {
		zone := other.node.Labels[corev1.LabelTopologyZone]
		counts[zone] += 0
		for d := range other.citizens {
			if d.pod.Labels["app"] == c.pod.Labels["app"] {
				counts[zone]++
			}
		}
	}
	least := counts[h.node.Labels[corev1.LabelTopologyZone]]
	for _, n := range counts {
		least = min(least, n)
	}
	return counts[h.node.Labels[corev1.LabelTopologyZone]]+1-least <= 1
}

// settle chooses a node for a pod. The pod is bound later.
func (w *town) settle(c *citizen, h *house) {
	c.home = h
	h.cpu, h.memory, h.pods = h.cpu-c.cpu, h.memory-c.memory, h.pods-1
	h.alone[aloneBy(c)]++
	h.citizens[c] = true
	if before := w.houses[c.pod.Status.NominatedNodeName]; before != nil {
		delete(before.nominated, c)
	}
	if c.pod.Status.NominatedNodeName == h.node.Name {
		w.tally["nominations followed"]++
	}
	w.binding = append(w.binding, c)
}

// bind carries out the kube-scheduler's decisions, at its own rate.
func (w *town) bind(ctx context.Context) {
	pause := time.Duration(float64(time.Second) / w.pace.binds)
	for sleeping(ctx, pause) == nil {
		w.mu.Lock()
		if len(w.binding) > 0 {
			c := w.binding[0]
			w.binding = w.binding[1:]
			c.bound = true
			c.pod.Spec.NodeName, c.pod.Status.NominatedNodeName = c.home.node.Name, ""
			c.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			w.feed("pods", c.pod.DeepCopy())
			w.bound++
		}
		w.mu.Unlock()
	}
}

// patcher is the API server as a Nominator sees it.
type patcher struct {
	client.Client
	town *town
}

func (p patcher) Status() client.SubResourceWriter { return nominations{town: p.town} }

type nominations struct {
	client.SubResourceWriter
	town *town
}

// Patch accepts a nomination, unless the pod is bound.
func (n nominations) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	w := n.town
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var body struct {
		Status struct{ NominatedNodeName string }
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return err
	}
	select {
	case w.patching <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.patching }()
	if err := sleeping(ctx, w.pace.patch); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally["nominations"]++
	c := w.pods[object.GetName()]
	switch {
	case w.random.Float64() < w.pace.refused:
		w.tally["nominations refused"]++
		return apierrors.NewTooManyRequests("busy", 1)
	case c.bound:
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, object.GetName(), nil)
	}
	if before := w.houses[c.pod.Status.NominatedNodeName]; before != nil {
		delete(before.nominated, c)
	}
	c.pod.Status.NominatedNodeName = body.Status.NominatedNodeName
	if h := w.houses[body.Status.NominatedNodeName]; h != nil && c.home == nil {
		h.nominated[c] = true
	}
	w.feed("pods", c.pod.DeepCopy())
	return nil
}

// crowd returns pods of one ReplicaSet for which the kube-scheduler has found no node.
func crowd(count int, name, cpu, memory string, change ...func(*corev1.Pod)) []*corev1.Pod {
	var pods []*corev1.Pod
	yes := true
	for i := range count {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%04d", name, i), UID: types.UID(fmt.Sprintf("uid-%s-%04d", name, i)),
				Labels: map[string]string{"app": name}, CreationTimestamp: metav1.Now(),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, Controller: &yes}}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
		}
		for _, c := range change {
			c(pod)
		}
		pods = append(pods, pod)
	}
	return pods
}
