package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// living is a world to which things happen, seen through a mirror: what has not changed stays the same object.
type living struct {
	*world
	at       time.Time
	serial   int
	seenPods map[*corev1.Pod]*plan.Pod
	seen     map[string]sighted
	budgets  []*plan.DisruptionBudget
	in       plan.Input
	gone     []*plan.Node
}

// sighted is a node as it was shown, and what it was shown for.
type sighted struct {
	bare, shown *plan.Node
	pods        []*corev1.Pod
}

func live(w *world) *living {
	if w.namespaces == nil {
		w.namespaces = namespaces
	}
	return &living{world: w, at: now, seenPods: map[*corev1.Pod]*plan.Pod{}, seen: map[string]sighted{}, in: plan.Input{Held: map[string]plan.Hold{}, Settling: map[string]bool{}, Unavailable: map[cloud.OfferingKey]time.Time{}}}
}

func (l *living) pod(pod *corev1.Pod) *plan.Pod {
	if l.seenPods[pod] == nil {
		l.seenPods[pod] = l.interner().Pod(pod)
	}
	return l.seenPods[pod]
}

func (l *living) look() plan.Input {
	in := l.in
	in.Held, in.Settling, in.Unavailable = maps.Clone(in.Held), maps.Clone(in.Settling), maps.Clone(in.Unavailable)
	in.Snapshot = &plan.Snapshot{Time: l.at, DaemonSets: l.daemons, Namespaces: l.namespaces, DisruptionBudgets: l.budgets}
	for _, n := range l.nodes {
		was, pods := l.seen[n.Key()], l.bound[n.Key()]
		if was.bare != n || !slices.Equal(was.pods, pods) {
			was = sighted{bare: n, pods: slices.Clone(pods)}
			var reduced []*plan.Pod
			for _, pod := range pods {
				reduced = append(reduced, l.pod(pod))
			}
			was.shown = n.WithPods(append(reduced, n.Pods...))
			l.seen[n.Key()] = was
		}
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, was.shown)
	}
	for _, pod := range l.pods {
		in.Snapshot.Pending = append(in.Snapshot.Pending, l.pod(pod))
	}
	for _, pool := range l.pools {
		in.Snapshot.NodePools = append(in.Snapshot.NodePools, pool.NodePool)
	}
	in.Pools = slices.Clone(l.pools)
	return in
}

// dice are what chooses.
type dice func(label string, n int) int

func rolled[T any](d dice, label string, values []T) T { return values[d(label, len(values))] }

// turnNode replaces a node by a version of it.
func (l *living) turnNode(i int, change func(*plan.Node)) {
	n := *l.nodes[i]
	change(&n)
	l.nodes = slices.Clone(l.nodes)
	l.nodes[i] = &n
}

// turnPod replaces a pod on a node by a version of it.
func (l *living) turnPod(d dice, change func(*corev1.Pod)) string {
	busy := slices.DeleteFunc(slices.Clone(l.nodes), func(n *plan.Node) bool { return len(l.bound[n.Key()]) == 0 })
	if len(busy) == 0 {
		return "nothing"
	}
	key := rolled(d, "node of pod", busy).Key()
	pods := slices.Clone(l.bound[key])
	i := d("pod", len(pods))
	pods[i] = pods[i].DeepCopy()
	change(pods[i])
	l.bound[key] = pods
	return pods[i].Name + " on " + key
}

// stir lets something happen, and says what.
func (l *living) stir(d dice) string {
	if len(l.nodes) == 0 {
		return "nothing"
	}
	i := d("node", len(l.nodes))
	key := l.nodes[i].Key()
	happenings := []func() string{l.podComes(d), l.podComes(d), l.podLeaves(d), l.podLeaves(d), l.podLeaves(d), l.podChanges(d), l.podMoves(d), l.nodeChanges(d, i), l.nodeChanges(d, i),
		func() string {
			l.turnNode(i, func(*plan.Node) {})
			return key + " is told again"
		}, l.marketChanges(d), l.clusterChanges(d), l.pendingChanges(d), func() string {
			passes := rolled(d, "passes", []time.Duration{time.Second, 20 * time.Second, 5 * time.Minute, time.Hour})
			l.at = l.at.Add(passes)
			return passes.String() + " pass"
		}, func() string { return "nothing" }}
	return happenings[d("happening", len(happenings))]()
}

func (l *living) podComes(d dice) func() string {
	return func() string {
		var all []*corev1.Pod
		for _, n := range l.nodes {
			all = append(all, l.bound[n.Key()]...)
		}
		if len(all) == 0 {
			return "nothing"
		}
		l.serial++
		pod := rolled(d, "model", all).DeepCopy()
		pod.Name, pod.DeletionTimestamp = fmt.Sprintf("later-%d", l.serial), nil
		pod.UID = types.UID("uid-" + pod.Name)
		n := rolled(d, "comes to", l.nodes)
		if n.Name == "" || !l.hasRoom(n, pod) {
			return "nothing"
		}
		pod.Spec.NodeName = n.Name
		l.bound[n.Key()] = append(slices.Clone(l.bound[n.Key()]), pod)
		return pod.Name + " comes to " + n.Key()
	}
}

func (l *living) podLeaves(d dice) func() string {
	return func() string {
		n := rolled(d, "leaves", l.nodes)
		pods := l.bound[n.Key()]
		if len(pods) == 0 {
			return "nothing"
		}
		i := d("leaver", len(pods))
		l.bound[n.Key()] = slices.Delete(slices.Clone(pods), i, i+1)
		return "a pod leaves " + n.Key()
	}
}

// podMoves swaps two pods, so that counts stay as they are and nodes do not.
func (l *living) podMoves(d dice) func() string {
	return func() string {
		from, to := rolled(d, "from", l.nodes), rolled(d, "to", l.nodes)
		if len(l.bound[from.Key()]) == 0 || to.Name == "" || from == to {
			return "nothing"
		}
		pod := l.bound[from.Key()][0].DeepCopy()
		if !l.hasRoom(to, pod) {
			return "nothing"
		}
		pod.Spec.NodeName = to.Name
		l.bound[from.Key()] = slices.Clone(l.bound[from.Key()][1:])
		l.bound[to.Key()] = append(slices.Clone(l.bound[to.Key()]), pod)
		return pod.Name + " moves from " + from.Key() + " to " + to.Key()
	}
}

func (l *living) podChanges(d dice) func() string {
	return func() string {
		how := d("pod change", 6)
		which := l.turnPod(d, func(pod *corev1.Pod) {
			switch how {
			case 0:
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(rolled(d, "cpu", []string{"50m", "400m", "1", "2"})), corev1.ResourceMemory: resource.MustParse("300Mi")}
			case 1:
				pod.Labels = map[string]string{"app": rolled(d, "app", workloadNames), "version": "3"}
			case 2:
				pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: rolled(d, "protects", []string{"true", "", "2h"})}
			case 3:
				pod.DeletionTimestamp = &metav1.Time{Time: now}
			case 4:
				priority := int32(d("priority", 3) * 1000)
				pod.Spec.Priority = &priority
			case 5:
				rolled(d, "relation", slices.Concat(relations(), preferences()))(pod)
			}
		})
		return fmt.Sprintf("change %d of pod %s", how, which)
	}
}

func (l *living) nodeChanges(d dice, i int) func() string {
	return func() string {
		how, key := d("node change", 14), l.nodes[i].Key()
		switch how {
		case 0:
			if len(l.nodes) > 1 {
				l.gone = append(l.gone, l.nodes[i])
				l.nodes = slices.Delete(slices.Clone(l.nodes), i, i+1)
				delete(l.bound, key)
			}
			return key + " goes"
		case 1:
			n := *rolled(d, "model", append(slices.Clone(l.gone), l.nodes[i]))
			l.serial++
			n.Name, n.Labels = fmt.Sprintf("later-node-%d", l.serial), maps.Clone(n.Labels)
			n.Claim, n.Labels[hostname] = "claim-"+n.Name, n.Name
			l.nodes = append(slices.Clone(l.nodes), &n)
			return n.Name + " comes"
		}
		l.turnNode(i, func(n *plan.Node) {
			switch how {
			case 2:
				n.Cordoned = !n.Cordoned
			case 3:
				n.Deleting = !n.Deleting
			case 4:
				n.Disrupted, n.Deleting = !n.Disrupted, !n.Disrupted
			case 5:
				n.Drifted = !n.Drifted
			case 6:
				n.Initialized = !n.Initialized && n.Name != ""
			case 7:
				n.Taints = rolled(d, "taints", [][]corev1.Taint{nil, {{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}, {{Key: "fussy", Effect: corev1.TaintEffectPreferNoSchedule}}})
			case 8:
				n.Labels = maps.Clone(n.Labels)
				n.Labels["slot"] = rolled(d, "slot", []string{"1", "2"})
			case 9, 10:
				n.LastPodEvent = l.at
			case 11:
				n.NominatedUntil = l.at.Add(20 * time.Second)
			case 12:
				n.DoNotDisrupt = !n.DoNotDisrupt
			case 13:
				n.Ready = !n.Ready
			}
		})
		return fmt.Sprintf("change %d of %s", how, key)
	}
}

func (l *living) clusterChanges(d dice) func() string {
	return func() string {
		how := d("cluster change", 12)
		turnPool := func(change func(*karpv1.NodePool)) {
			l.pools = slices.Clone(l.pools)
			p := &l.pools[d("pool", len(l.pools))]
			p.NodePool = p.NodePool.DeepCopy()
			change(p.NodePool)
		}
		switch how {
		case 0:
			l.budgets = []*plan.DisruptionBudget{l.interner().DisruptionBudget(pdb(rolled(d, "app", workloadNames), int32(d("allows", 2))))}
		case 1:
			l.budgets = nil
		case 2:
			turnPool(func(p *karpv1.NodePool) {
				p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: rolled(d, "budget", []string{"100%", "1", "50%"})}}
			})
		case 3:
			turnPool(func(p *karpv1.NodePool) {
				p.Spec.Disruption.ConsolidationPolicy = rolled(d, "policy", []karpv1.ConsolidationPolicy{karpv1.ConsolidationPolicyBalanced, karpv1.ConsolidationPolicyWhenEmpty, karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized})
			})
		case 4:
			turnPool(func(p *karpv1.NodePool) {
				p.Spec.Disruption.ConsolidateAfter = karpv1.NewNillableDuration(rolled(d, "after", []time.Duration{0, time.Minute, 10 * time.Minute}))
			})
		case 5:
			turnPool(rolled(d, "pool option", []func(*karpv1.NodePool){weighs(7), onDemand(), limit(corev1.ResourceCPU, "64"), func(p *karpv1.NodePool) { p.Status.Resources = nil }}))
		case 6:
			l.in.Held[rolled(d, "held", l.nodes).Key()] = plan.Hold{Until: l.at.Add(time.Minute), Why: "it was given back"}
		case 7:
			l.in.Settling[l.pools[0].NodePool.Name] = !l.in.Settling[l.pools[0].NodePool.Name]
		case 8:
			l.in.SpotToSpot = !l.in.SpotToSpot
		case 9:
			l.namespaces = maps.Clone(l.namespaces)
			l.namespaces["shop"] = map[string]string{"team": rolled(d, "team", []string{"a", "b"})}
		case 10:
			if len(l.daemons) > 0 {
				l.daemons, l.daemonSets = l.daemons[1:], l.daemonSets[1:]
				break
			}
			l.serial++
			l.addDaemonSet(fmt.Sprintf("later-daemon-%d", l.serial), newPod("x", "100m", "64Mi", selects(corev1.LabelArchStable, "amd64")).Spec)
		case 11:
			l.in.Preferences = rolled(d, "preferences", []plan.PreferencePolicy{plan.PreferencesIgnore, plan.PreferencesRespect})
		}
		return fmt.Sprintf("change %d of the cluster", how)
	}
}

func (l *living) marketChanges(d dice) func() string {
	return func() string {
		l.pools = slices.Clone(l.pools)
		p := &l.pools[d("pool", len(l.pools))]
		p.Types = slices.Clone(p.Types)
		k := d("type", len(p.Types))
		typ := *p.Types[k]
		if d("unavailable", 3) == 0 {
			for _, o := range typ.Offerings {
				l.in.Unavailable[cloud.OfferingKey{InstanceType: typ.Name, CapacityType: o.CapacityType, Zone: o.Zone}] = l.at.Add(3 * time.Minute)
			}
			return typ.Name + " is not to be had"
		}
		typ.Offerings = slices.Clone(typ.Offerings)
		factor := rolled(d, "factor", []float64{0.2, 0.5, 0.7, 0.9, 1.5, 3})
		for i := range typ.Offerings {
			typ.Offerings[i].Price *= factor
		}
		p.Types[k] = &typ
		return fmt.Sprintf("%s costs %.1f times as much", typ.Name, factor)
	}
}

func (l *living) pendingChanges(d dice) func() string {
	return func() string {
		if len(l.pods) > 0 && d("goes", 2) == 0 {
			l.pods = slices.Delete(slices.Clone(l.pods), 0, 1)
			return "a pod waits no more"
		}
		l.serial++
		pod := newPod(fmt.Sprintf("pending-%d", l.serial), rolled(d, "cpu", []string{"100m", "1", "30"}), "128Mi", app(rolled(d, "app", workloadNames)))
		pod.CreationTimestamp = metav1.NewTime(l.at.Add(-rolled(d, "since", []time.Duration{0, time.Hour})))
		if d("related", 3) == 0 {
			rolled(d, "relation", relations())(pod)
		}
		l.pods = append(slices.Clone(l.pods), pod)
		return pod.Name + " waits"
	}
}

// busyWorld is a drawn world with more nodes, which are mostly full, and nothing that waits.
func busyWorld(t *rapid.T, d drawing) *world {
	w := settledWorld(t, d)
	catalogue := w.pools[0].Types
	for i := range rapid.IntRange(0, 10).Draw(t, "more nodes") {
		if n := drawNode(t, d, w.pools[0].NodePool, catalogue, 10+i); w.nodeFor(n, func(int) int { return 0 }) != nil {
			w.nodes = append(w.nodes, n)
		}
	}
	for _, name := range workloadNames[:rapid.IntRange(1, len(workloadNames)).Draw(t, "more workloads")] {
		drawWorkload(t, d, w, "more-"+name)
	}
	for _, pod := range w.pods {
		if len(w.nodes) == 0 {
			break
		}
		if n := oneOf(t, "settles on", w.nodes); n.Name != "" && w.hasRoom(n, pod) {
			pod.Spec.NodeName, pod.Status.Conditions = n.Name, nil
			w.bound[n.Key()] = append(w.bound[n.Key()], pod)
		}
	}
	w.pods = nil
	return w
}

// A cluster that was evaluated before is evaluated as if for the first time, whatever has happened to it.
func TestMemoryForgetsWhatChanged(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]drawing{
		"no relations": {replicas: 12, settled: true, unlimited: true},
		"relations":    {replicas: 6, relations: relations(), settled: true, unlimited: true, anyChoice: true},
		"everything":   {replicas: 8, relations: relations(), preferences: preferences()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recalled, asked := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				l := live(busyWorld(t, d))
				var memory plan.Memory
				roll := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
				events := []string{"at first"}
				for range rapid.IntRange(1, 12).Draw(t, "steps") {
					in := l.look()
					got, want := memory.Disrupt(in), plan.Disrupt(in)
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("%v\nafter %q (-from scratch +with memory):\n%s", l.world, events, diff)
					}
					r, a, _ := memory.Recalled()
					recalled, asked = recalled+r, asked+a
					for range rapid.IntRange(1, 3).Draw(t, "events") {
						events = append(events, l.stir(roll))
					}
				}
			})
			t.Logf("%d questions were answered from memory, %d were asked", recalled, asked)
			if recalled*10 < asked {
				t.Errorf("%d questions were answered from memory, and %d were asked", recalled, asked)
			}
		})
	}
}

// In a larger cluster, too, in which groups of nodes are looked for. Most of what happens is about single pods and nodes, and
// now and then a command is carried out. Of every other one half of the pods have gone before.
func TestMemoryOfTown(t *testing.T) {
	t.Parallel()
	recalled, asked, grown := 0, 0, 0
	t.Run("", func(t *testing.T) {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 11))
				l := live(packedTown(t, r, smallCatalogue(), 700, [2]string{"50m", "64Mi"}, [2]string{"100m", "2Gi"}, [2]string{"50m", "1Gi"}))
				if seed%2 == 1 {
					for key, pods := range l.bound {
						l.bound[key] = pods[:len(pods)-len(pods)/2]
					}
				}
				var memory plan.Memory
				events := []string{"at first"}
				for range 150 {
					in := l.look()
					got, want := memory.Disrupt(in), plan.Disrupt(in)
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("after %q (-from scratch +with memory):\n%s", events[max(0, len(events)-5):], diff)
					}
					m, a, g := memory.Recalled()
					recalled, asked, grown = recalled+m, asked+a, grown+g
					if len(got.Commands) > 0 && r.IntN(2) == 0 {
						l.carryOut(got.Commands[r.IntN(len(got.Commands))])
						events = append(events, "a command is carried out")
						continue
					}
					events = append(events, l.stir(func(label string, n int) int {
						if label == "happening" && r.IntN(8) > 0 {
							n = 10
						}
						return r.IntN(n)
					}))
				}
			})
		}
	})
	t.Logf("%d questions were answered from memory, %d were asked; %d groups were remembered", recalled, asked, grown)
	if recalled < asked || grown == 0 {
		t.Errorf("%d questions were answered from memory, and %d were asked; %d groups were remembered", recalled, asked, grown)
	}
}

// carryOut takes the nodes of a command away, with their pods.
func (l *living) carryOut(command plan.Command) {
	l.nodes = slices.DeleteFunc(slices.Clone(l.nodes), func(n *plan.Node) bool { return slices.Contains(command.Nodes, n.Key()) })
	for _, key := range command.Nodes {
		delete(l.bound, key)
	}
}
