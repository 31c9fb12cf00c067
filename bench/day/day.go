// Package day plays a day of a cluster in which Deployments scale up and down, without a cluster: time goes in steps, and
// what a cluster would do in one is done at once. Who consolidates is exchangeable; everything else is the same for
// everybody.
//
// # A step
//
// Deployments change their replicas as the hour demands (demand.go). Pods that go are those a ReplicaSet would take, pods
// that come are bound as the kube-scheduler would with its default plugins, which spread them (bind.go). For what fits nowhere
// machines are bought as plan.Pack decides, whoever consolidates, and the pods bound to the machines they were bought for.
// Then the consolidator is asked, again and again, until it wants nothing more or the step is over: an answer takes fifteen
// seconds, because either waits so long before it believes one. A node may be consolidated when no pod has come to it or
// left it for the pool's consolidateAfter. The pods of all nodes that go at the same time are bound anew together, in no
// order that means anything, but that Tenon evicts the large ones first; if they do not fit, machines are bought for them.
//
// # Spot
//
// A day may have spot machines, whose pools run dry: families in a zone together, as a seeded process has it (drought.go).
// When Deployments have changed, the machines of dry pools are taken back; their pods are bound anew. Of the spot pools that a
// launch lists EC2 takes the cheapest of the half with the most spare capacity, for everybody.
//
// # What is counted
//
// The bill of the day, the pods that had to move because their node was taken away, and the nodes launched. What is saved
// is the difference to the bill of a day on which only empty nodes go. With spot also the nodes that were taken back, their
// pods, and the largest part of one workload that was lost in one step.
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
	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/bench/workload"
	"github.com/tenon-sh/tenon/cloud"
)

// answerTime is how long a consolidator waits before it carries out what it decided.
const answerTime = 15 * time.Second

// Consolidator says what to take away from a cluster in which no pod waits. All decisions of one answer are carried out
// together.
type Consolidator func(ctx context.Context, q *duel.Question) ([]duel.Decision, error)

// Options describe the day.
type Options struct {
	Seed uint64
	// Length is how long the day is, Step how long a step.
	Length, Step time.Duration
	// ConsolidateAfter is the pool's.
	ConsolidateAfter time.Duration
	// Deployments is how many there are.
	Deployments int
	// Catalogue is what can be bought: on demand, and with Spot as spot as well.
	Catalogue []*cloud.InstanceType
	// Spot says that spot machines are bought too, and taken back.
	Spot bool
	// Packing is the pool's annotation tenon.sh/packing; none if empty.
	Packing string
	// Buyer decides what is bought for pods that wait; nil means plan.Pack.
	Buyer func(ctx context.Context, q *duel.Question) (duel.Answer, error)
	// Still is the time from which on no Deployment changes any more; zero if there is none.
	Still time.Duration
	// Waves is in how many waves the pods of Settle come: what comes in several is packed worse. Zero means one.
	Waves int
	// Going is for how long the pods go that Settle takes away. Zero means that all go at once.
	Going time.Duration
	// Watch is told of each decision before it is carried out; nil watches nothing.
	Watch func(at time.Time, q *duel.Question, d duel.Decision)
}

// Usual is a day of 24 hours in steps of ten minutes, with forty Deployments.
func Usual(catalogue []*cloud.InstanceType) Options {
	return Options{Seed: 1, Length: 24 * time.Hour, Step: 10 * time.Minute, ConsolidateAfter: time.Minute, Deployments: 40, Catalogue: catalogue}
}

// Result is what became of the day.
type Result struct {
	// Dollars is the bill.
	Dollars float64
	// PodsMoved is how many pods were on nodes when those were taken away.
	PodsMoved int
	// Decisions is how many there were, NodesTaken how many nodes they took, Launched how many nodes were launched at all.
	Decisions, NodesTaken, Launched int
	// MostPods and MostNodes are the largest numbers there were at the end of a step.
	MostPods, MostNodes int
	// Interrupted is how many spot nodes were taken back, PodsInterrupted how many pods were on them.
	Interrupted, PodsInterrupted int
	// LargestLoss is the largest part of one workload, of at least six replicas, that was on the nodes taken back in one step,
	// and LargeLosses how often that was more than a third.
	LargestLoss float64
	LargeLosses int
}

// Run plays the day.
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

// Empty is a consolidator that takes empty nodes and no others.
func Empty(_ context.Context, q *duel.Question) ([]duel.Decision, error) {
	var empty []string
	for i := range q.Nodes {
		if len(q.Nodes[i].Pods) == 0 && consolidatable(q.Nodes[i].Claim) {
			empty = append(empty, q.Nodes[i].Node.Name)
		}
	}
	if len(empty) == 0 {
		return nil, nil
	}
	return []duel.Decision{{Reason: string(karpv1.DisruptionReasonEmpty), Nodes: empty}}, nil
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
	later   map[types.UID]bool // of those that wait, the ones that were evicted after the others
	// catalogue is what can be bought now, types the same by name.
	catalogue []*cloud.InstanceType
	types     map[string]*cloud.InstanceType
	droughts  droughts
	pool      *karpv1.NodePool
	serial    int
	turn      int // of the kube-scheduler, among the nodes
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

// question is the cluster as a planner is asked about it.
func (w *world) question() *duel.Question {
	q := workload.Ask("day", w.waiting, w.catalogue, w.pool)
	q.At = w.now
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		q.Nodes = append(q.Nodes, w.nodes[name].asNode(w.now, w.options.ConsolidateAfter))
	}
	return q
}

// place gives every pod that waits a node.
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

// answer is what is to be bought for the pods that wait.
func (w *world) answer(ctx context.Context) (duel.Answer, error) {
	if w.options.Buyer != nil {
		return w.options.Buyer(ctx, w.question())
	}
	return tenon.Plan(w.question()), nil
}

// sale is one thing that a machine may be.
type sale struct {
	kind     *cloud.InstanceType
	offering cloud.Offering
}

// buy launches what EC2 would take of what a machine may be: spot, where that is possible.
func (w *world) buy(m duel.Machine) (*machine, error) {
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

// sales are what a machine may be of one capacity type.
func (w *world) sales(m duel.Machine, capacity string) []sale {
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

// consolidate asks until nothing more is wanted, or the step is over.
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

// carryOut buys the replacements, and takes the nodes away.
func (w *world) carryOut(d duel.Decision) error {
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

// evict takes a node away. Its pods wait: it is another pod that takes the place of each.
func (w *world) evict(m *machine) {
	for _, p := range m.pods {
		p.Spec.NodeName, p.UID, p.CreationTimestamp = "", w.uid(), metav1.NewTime(w.now)
		w.waiting = append(w.waiting, p)
	}
	delete(w.nodes, m.name)
}

// account charges for a step.
func (w *world) account() {
	pods := 0
	for _, m := range w.nodes {
		pods += len(m.pods)
	}
	w.result.Dollars += w.price() * w.options.Step.Hours()
	w.result.MostPods, w.result.MostNodes = max(w.result.MostPods, pods), max(w.result.MostNodes, len(w.nodes))
}

// price is what the nodes cost per hour.
func (w *world) price() float64 {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) { // in order, because sums of fractions depend on it
		sum += w.nodes[name].offering.Price
	}
	return sum
}
