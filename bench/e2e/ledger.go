package e2e

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// ledger watches the cluster from outside: what its nodes cost, and which pods had to move.
type ledger struct {
	prices map[string]float64
	stop   chan struct{}

	mu      sync.Mutex
	nodes   map[string]string // instance type by name
	unknown map[string]bool   // instance types without a price
	created int
	changed time.Time // when the bill last changed
	ready   map[types.UID]bool
	evicted map[types.UID]bool
	// late are the pods created since the scaling down: each replaces one that had to move.
	late  map[types.UID]bool
	since time.Time
	pods  map[types.UID]bool
}

// newLedger starts to watch.
func newLedger(config *rest.Config, prices map[string]float64) (*ledger, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &ledger{
		prices: prices, stop: make(chan struct{}), nodes: map[string]string{}, unknown: map[string]bool{},
		ready: map[types.UID]bool{}, evicted: map[types.UID]bool{}, late: map[types.UID]bool{}, pods: map[types.UID]bool{},
	}
	factory := informers.NewSharedInformerFactory(clientset, 0)
	for informer, handlers := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		factory.Core().V1().Nodes().Informer(): {AddFunc: l.node, UpdateFunc: func(_, o any) { l.node(o) }, DeleteFunc: l.nodeGone},
		factory.Core().V1().Pods().Informer():  {AddFunc: l.pod, UpdateFunc: func(_, o any) { l.pod(o) }, DeleteFunc: l.podGone},
	} {
		if _, err := informer.AddEventHandler(handlers); err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
	}
	factory.Start(l.stop)
	factory.WaitForCacheSync(l.stop)
	return l, nil
}

func (l *ledger) close() { close(l.stop) }

// from starts counting the pods that are created.
func (l *ledger) from(moment time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since, l.created = moment, 0
}

func (l *ledger) node(o any) {
	n := o.(*corev1.Node)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.nodes[n.Name]; known {
		return
	}
	instanceType := n.Labels[corev1.LabelInstanceTypeStable]
	l.nodes[n.Name], l.changed = instanceType, time.Now()
	l.created++
	if _, known := l.prices[instanceType]; !known {
		l.unknown[instanceType] = true
	}
}

func (l *ledger) nodeGone(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.nodes, o.(*corev1.Node).Name)
	l.changed = time.Now()
}

func (l *ledger) pod(o any) {
	p := o.(*corev1.Pod)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pods[p.UID] {
		l.pods[p.UID] = true
		if !l.since.IsZero() && p.CreationTimestamp.After(l.since) {
			l.late[p.UID] = true
		}
	}
	if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero() {
		l.ready[p.UID] = true
	} else {
		delete(l.ready, p.UID)
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			l.evicted[p.UID] = true
		}
	}
}

func (l *ledger) podGone(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ready, o.(*corev1.Pod).UID)
	delete(l.pods, o.(*corev1.Pod).UID)
}

// reading is the state of the ledger at one moment.
type reading struct {
	usd            float64 // per hour
	nodes, created int
	running, pods  int
	evicted, late  int
	changed        time.Time
}

func (l *ledger) read() (reading, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for instanceType := range l.unknown {
		return reading{}, fmt.Errorf("a node is of instance type %q, which the price list does not have", instanceType)
	}
	r := reading{
		nodes: len(l.nodes), created: l.created, running: len(l.ready), pods: len(l.pods), evicted: len(l.evicted), late: len(l.late), changed: l.changed}
	for _, instanceType := range l.nodes {
		r.usd += l.prices[instanceType]
	}
	return r, nil
}
