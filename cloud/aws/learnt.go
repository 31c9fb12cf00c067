package aws

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloud"
)

const (
	// learnEvery is the minimum interval between two looks at what nodes report.
	learnEvery = 10 * time.Second
	// learntFor is how long a report counts, and learntMost how many are kept; the first is Karpenter's.
	learntFor  = 60 * 24 * time.Hour
	learntMost = 8192
)

// learnt is what nodes have reported as their memory. How much of it the hypervisor and the firmware take is not published,
// and --vm-memory-overhead-percent is an estimate for all types: too high for most, which wastes memory, and too low for
// some, so that pods are planned for a node that then has no room for them. A node of the same type and image has the same
// memory, so one that has registered settles the question. As with Karpenter, the first report replaces the estimate,
// whichever is greater, and further ones count only if they are lower.
type learnt struct {
	memory *ttlCache[learntKey, int64]
	now    func() time.Time

	mu      sync.Mutex
	source  func() []cloud.NodeReport
	asked   time.Time
	version uint64 // changes whenever a report has changed what is known
}

// learntKey is what determines the memory of a node.
type learntKey struct{ instanceType, image string }

func newLearnt(now func() time.Time) *learnt {
	return &learnt{memory: newTTLCache[learntKey, int64](learntFor, learntMost, now), now: now}
}

// LearnFrom sets the source of what the cluster's registered nodes report. All of them are read again from time to time, so
// that a restarted worker knows again what running nodes have taught before.
func (p *Provider) LearnFrom(source func() []cloud.NodeReport) {
	p.catalogue.learnt.mu.Lock()
	defer p.catalogue.learnt.mu.Unlock()
	p.catalogue.learnt.source = source
}

// refresh reads the source if it was not read lately, and returns the version of what is known.
func (l *learnt) refresh() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == nil || !l.asked.IsZero() && l.now().Sub(l.asked) < learnEvery {
		return l.version
	}
	l.asked = l.now()
	for _, report := range l.source() {
		if l.learn(report) {
			l.version++
		}
	}
	return l.version
}

// learn takes one report into account, and says whether it changes what is known. A report that confirms what is known
// keeps it from being forgotten.
func (l *learnt) learn(report cloud.NodeReport) bool {
	if report.InstanceType == "" || report.Image == "" || report.Memory <= 0 {
		return false
	}
	key := learntKey{report.InstanceType, report.Image}
	known, ok := l.memory.get(key)
	if ok && report.Memory > known {
		return false
	}
	l.memory.put(key, report.Memory)
	return !ok || report.Memory < known
}

// correct replaces the estimated memory of a node by what is known of its type and image. What is kept from pods stays as
// it was estimated.
func (l *learnt) correct(capacity, allocatable corev1.ResourceList, instanceType, image string) {
	known, ok := l.memory.get(learntKey{instanceType, image})
	if !ok {
		return
	}
	total, free := capacity[corev1.ResourceMemory], allocatable[corev1.ResourceMemory]
	kept := total.Value() - free.Value()
	capacity[corev1.ResourceMemory] = *resource.NewQuantity(known, resource.BinarySI)
	allocatable[corev1.ResourceMemory] = *resource.NewQuantity(max(0, known-kept), resource.BinarySI)
}
