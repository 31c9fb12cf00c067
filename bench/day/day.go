// Package day simulates a day of a cluster in which Deployments scale up and down, without a cluster: time advances in
// steps, and what a cluster would do during a step happens at once. The consolidator is exchangeable; everything else is the
// same for all.
//
// # A step
//
// Deployments change their replicas as the hour demands (demand.go). A ReplicaSet's rules choose the pods to remove; new
// pods are bound as the kube-scheduler would with its default plugins, which spread them (bind.go). For pods that fit
// nowhere, machines are bought as plan.Pack decides, whichever consolidator plays, and the pods are bound to the machines
// bought for them. Then the consolidator is asked repeatedly until it wants nothing more or the step is over. Each answer
// takes fifteen seconds, because Tenon and Karpenter both wait that long before they trust one. A node may be consolidated
// when no pod has come to it or left it for the pool's consolidateAfter. The pods of all nodes that are removed at the same
// time are bound together again, in arbitrary order, except that Tenon evicts the large ones first; if they do not fit,
// machines are bought for them.
//
// # Spot
//
// A day may have spot machines, whose pools run dry: a seeded process empties the pools of a family in a zone together
// (drought.go). After Deployments have changed, the machines of dry pools are interrupted, and their pods are bound again.
// For everybody, EC2 takes the cheapest among the half of the launch's spot pools with the most spare capacity.
//
// # What is counted
//
// The bill of the day, the pods that had to move because their node was removed, and the nodes launched. The saving is the
// difference to the bill of a day on which only empty nodes are removed. With spot, also the interrupted nodes, their pods,
// and the largest part of one workload that was lost in one step.
package day

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/bench/workload"
	"github.com/tenon-sh/tenon/cloud"
)

// answerTime is how long a consolidator waits before it carries out its decision.
const answerTime = 15 * time.Second

// Consolidator decides which nodes to remove from a cluster in which no pod waits. All decisions of one answer are carried
// out together.
type Consolidator func(ctx context.Context, q *compare.Question) ([]compare.Decision, error)

// Options describe the day.
type Options struct {
	Seed uint64
	// Length is the length of the day, Step that of a step.
	Length, Step time.Duration
	// ConsolidateAfter is the pool's setting.
	ConsolidateAfter time.Duration
	// Deployments is the number of Deployments.
	Deployments int
	// Catalogue is what can be bought: on demand, and with Spot also as spot.
	Catalogue []*cloud.InstanceType
	// Spot says that spot machines are bought too, and interrupted.
	Spot bool
	// Packing is the pool's annotation tenon.sh/packing; none if empty.
	Packing string
	// Buyer decides what to buy for waiting pods; nil means plan.Pack.
	Buyer func(ctx context.Context, q *compare.Question) (compare.Answer, error)
	// Still is the time after which no Deployment changes any more; zero means never.
	Still time.Duration
	// Waves is the number of waves in which the pods of Settle arrive: several waves pack worse than one. Zero means one.
	Waves int
	// Going is the time over which Settle removes pods. Zero removes all at once.
	Going time.Duration
	// Watch is called with each decision before it is carried out; it may be nil.
	Watch func(at time.Time, q *compare.Question, d compare.Decision)
}

// Usual returns a day of 24 hours in steps of ten minutes, with forty Deployments.
func Usual(catalogue []*cloud.InstanceType) Options {
	return Options{Seed: 1, Length: 24 * time.Hour, Step: 10 * time.Minute, ConsolidateAfter: time.Minute, Deployments: 40, Catalogue: catalogue}
}

// Result is the outcome of the day.
type Result struct {
	// Dollars is the bill.
	Dollars float64
	// PodsMoved is how many pods were on nodes when those were removed.
	PodsMoved int
	// Decisions is the number of decisions, NodesTaken the number of nodes they removed, Launched the number of all nodes
	// launched.
	Decisions, NodesTaken, Launched int
	// MostPods and MostNodes are the largest numbers at the end of a step.
	MostPods, MostNodes int
	// Interrupted is the number of interrupted spot nodes, PodsInterrupted the number of pods on them.
	Interrupted, PodsInterrupted int
	// LargestLoss is the largest part of one workload, of at least six replicas, that was on the nodes interrupted in one
	// step, and LargeLosses the number of times that it was more than a third.
	LargestLoss float64
	LargeLosses int
}

// Run simulates the day.
func Run(ctx context.Context, o Options, consolidate Consolidator) (Result, error) {
	w := newWorld(o)
	for w.now.Before(Start.Add(o.Length)) {
		if err := ctx.Err(); err != nil {
			return w.result, err
		}
		w.now = w.now.Add(o.Step)
		if o.Still == 0 || w.now.Sub(Start) < o.Still {
			w.scale()
		}
		w.interrupt()
		if err := w.place(ctx); err != nil {
			return w.result, err
		}
		if err := w.consolidate(ctx, consolidate); err != nil {
			return w.result, fmt.Errorf("at %s: %w", w.now.Format(time.TimeOnly), err)
		}
		w.account()
	}
	return w.result, nil
}

// Empty is a consolidator that removes only empty nodes.
func Empty(_ context.Context, q *compare.Question) ([]compare.Decision, error) {
	var empty []string
	for i := range q.Nodes {
		if len(q.Nodes[i].Pods) == 0 && consolidatable(q.Nodes[i].Claim) {
			empty = append(empty, q.Nodes[i].Node.Name)
		}
	}
	if len(empty) == 0 {
		return nil, nil
	}
	return []compare.Decision{{Reason: string(karpv1.DisruptionReasonEmpty), Nodes: empty}}, nil
}

func consolidatable(claim *karpv1.NodeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(c condition) bool {
		return c.Type == karpv1.ConditionTypeConsolidatable && c.Status == "True"
	})
}

// Start is midnight.
var Start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// world is the cluster.
type world struct {
	options Options
	now     time.Time
	demand  []*demand
	nodes   map[string]*machine
	waiting []*corev1.Pod
	later   map[types.UID]bool // waiting pods that were evicted after the others
	// catalogue is what can be bought now, types the same by name.
	catalogue []*cloud.InstanceType
	types     map[string]*cloud.InstanceType
	droughts  droughts
	pool      *karpv1.NodePool
	serial    int
	turn      int // the kube-scheduler's position among the nodes
	uids      *rand.Rand
	result    Result
}

// machine is a node.
type machine struct {
	name             string
	kind             *cloud.InstanceType
	offering         cloud.Offering
	pods             []*corev1.Pod
	cpuLeft, memLeft int64
	born, lastEvent  time.Time
}

func newWorld(o Options) *world {
	w := &world{options: o, now: Start, demand: draw(o.Seed, o.Deployments), nodes: map[string]*machine{}, later: map[types.UID]bool{}, types: map[string]*cloud.InstanceType{},
		uids: rand.New(rand.NewPCG(o.Seed, 10)), catalogue: o.Catalogue, droughts: droughts{o.Seed}}
	for _, t := range o.Catalogue {
		w.types[t.Name] = t
	}
	capacity := []string{karpv1.CapacityTypeOnDemand}
	if o.Spot {
		capacity = append(capacity, karpv1.CapacityTypeSpot)
	}
	w.pool = workload.Pool("default", workload.Requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacity...),
		func(p *karpv1.NodePool) {
			if o.Packing != "" {
				p.Annotations = map[string]string{karpv1.PackingAnnotationKey: o.Packing}
			}
			p.Spec.Disruption.ConsolidateAfter = karpv1.NewNillableDuration(o.ConsolidateAfter)
			p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
		})
	return w
}

// question returns the cluster as a planner sees it.
func (w *world) question() *compare.Question {
	q := workload.Ask("day", w.waiting, w.catalogue, w.pool)
	q.At = w.now
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		q.Nodes = append(q.Nodes, w.nodes[name].asNode(w.now, w.options.ConsolidateAfter))
	}
	return q
}

// place gives every waiting pod a node.
func (w *world) place(ctx context.Context) error {
	w.bind()
	for range 3 {
		if len(w.waiting) == 0 {
			return nil
		}
		answer, err := w.answer(ctx)
		if err != nil {
			return err
		}
		for _, m := range answer.Machines {
			bought, err := w.buy(m)
			if err != nil {
				return err
			}
			w.put(bought, m.Pods)
		}
		w.bind()
	}
	return fmt.Errorf("%d pods wait that nothing can be bought for, %s among them", len(w.waiting), w.waiting[0].Name)
}

// answer returns what to buy for the waiting pods.
func (w *world) answer(ctx context.Context) (compare.Answer, error) {
	if w.options.Buyer != nil {
		return w.options.Buyer(ctx, w.question())
	}
	return tenon.Plan(w.question()), nil
}

// sale is an offering that a machine may become.
type sale struct {
	kind     *cloud.InstanceType
	offering cloud.Offering
}

// buy launches what EC2 would choose among a machine's alternatives: spot if possible.
func (w *world) buy(m compare.Machine) (*machine, error) {
	var found []sale
	for _, capacity := range []string{karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand} {
		if len(found) == 0 && slices.Contains(m.CapacityTypes, capacity) {
			found = w.deeper(w.sales(m, capacity))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("nothing can be bought of %v in %v as %v", m.Types, m.Zones, m.CapacityTypes)
	}
	cheapest := slices.MinFunc(found, func(a, b sale) int { return cmp.Compare(a.offering.Price, b.offering.Price) })
	best := &machine{kind: cheapest.kind, offering: cheapest.offering}
	w.serial++
	best.name = fmt.Sprintf("node-%05d", w.serial)
	best.cpuLeft, best.memLeft = best.kind.Allocatable.Cpu().MilliValue(), best.kind.Allocatable.Memory().Value()
	best.born, best.lastEvent = w.now, w.now
	w.nodes[best.name] = best
	w.result.Launched++
	return best, nil
}

// sales returns what a machine may become with one capacity type.
func (w *world) sales(m compare.Machine, capacity string) []sale {
	var found []sale
	for _, name := range m.Types {
		t := w.types[name]
		for _, offering := range t.Offerings {
			if offering.Available && offering.CapacityType == capacity && slices.Contains(m.Zones, offering.Zone) {
				found = append(found, sale{t, offering})
			}
		}
	}
	return found
}

// consolidate asks until nothing more is wanted or the step is over.
func (w *world) consolidate(ctx context.Context, ask Consolidator) error {
	begin := w.now
	defer func() { w.now = begin }()
	for ; w.now.Before(begin.Add(w.options.Step)); w.now = w.now.Add(answerTime) {
		q := w.question()
		decisions, err := ask(ctx, q)
		if err != nil || len(decisions) == 0 {
			return err
		}
		clear(w.later)
		for _, d := range decisions {
			if w.options.Watch != nil {
				w.options.Watch(w.now, q, d)
			}
			if err := w.carryOut(d); err != nil {
				return err
			}
		}
		if err := w.place(ctx); err != nil {
			return err
		}
	}
	return nil
}

// carryOut buys the replacements and removes the nodes.
func (w *world) carryOut(d compare.Decision) error {
	for _, m := range d.Buy {
		if _, err := w.buy(m); err != nil {
			return err
		}
	}
	for _, name := range d.Nodes {
		m := w.nodes[name]
		if m == nil {
			return fmt.Errorf("there is no node %s to take away", name)
		}
		w.result.PodsMoved += len(m.pods)
		w.result.NodesTaken++
		w.evict(m)
		for _, p := range m.pods {
			w.later[p.UID] = d.LargeFirst && !m.large(p)
		}
	}
	w.result.Decisions++
	return nil
}

// evict removes a node. Its pods wait, each as a new pod in place of the old one.
func (w *world) evict(m *machine) {
	for _, p := range m.pods {
		p.Spec.NodeName, p.UID, p.CreationTimestamp = "", w.uid(), metav1.NewTime(w.now)
		w.waiting = append(w.waiting, p)
	}
	delete(w.nodes, m.name)
}

// account adds a step to the bill.
func (w *world) account() {
	pods := 0
	for _, m := range w.nodes {
		pods += len(m.pods)
	}
	w.result.Dollars += w.price() * w.options.Step.Hours()
	w.result.MostPods, w.result.MostNodes = max(w.result.MostPods, pods), max(w.result.MostNodes, len(w.nodes))
}

// price returns what the nodes cost per hour.
func (w *world) price() float64 {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) { // in order, because sums of fractions depend on it
		sum += w.nodes[name].offering.Price
	}
	return sum
}
