package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/plan"
)

// Buffer is a CapacityBuffer with its virtual pods, or the reason why it has none.
type Buffer struct {
	Object *bufferv1.CapacityBuffer
	// Pods are the virtual pods that stand for the capacity the buffer asks for; Snapshot.Pending has them as well.
	Pods []*plan.Pod
	// Generation is that of the template or workload that the pods are made from; zero where there is none.
	Generation int64
	// Reason and Problem say why the buffer cannot be resolved: a reason of ReadyForProvisioning, and a sentence. Both
	// are empty otherwise.
	Reason, Problem string
}

// buffers are the resolved CapacityBuffers.
type buffers struct {
	*shared
	// resolved are the buffers by namespace and name.
	resolved map[string]Buffer
	// virtual are the UIDs of all virtual pods.
	virtual map[types.UID]bool
}

func newBuffers(s *shared) *buffers {
	return &buffers{shared: s, resolved: map[string]Buffer{}, virtual: map[types.UID]bool{}}
}

// Buffers returns all CapacityBuffers that Tenon serves, ordered by namespace and name.
func (b *buffers) Buffers() []Buffer {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return sorted(b.resolved)
}

// has says that a pod is a virtual pod of a buffer.
func (b *buffers) has(pod types.UID) bool { return b.virtual[pod] }

// withPods adds the virtual pods to the waiting ones. The argument is not changed.
func (b *buffers) withPods(waiting []*plan.Pod) []*plan.Pod {
	if len(b.virtual) == 0 {
		return waiting
	}
	all := slices.Grow(slices.Clone(waiting), len(b.virtual))
	for _, buffer := range b.resolved {
		all = append(all, buffer.Pods...)
	}
	slices.SortFunc(all, byUID)
	return all
}

// put replaces or removes a resolved buffer, and returns the virtual pods that it had. The lock is held.
func (b *buffers) put(key string, resolved Buffer, exists bool) (before []*plan.Pod) {
	before = b.resolved[key].Pods
	for _, pod := range before {
		delete(b.virtual, pod.UID)
	}
	for _, pod := range resolved.Pods {
		b.virtual[pod.UID] = true
	}
	if exists {
		b.resolved[key] = resolved
	} else {
		delete(b.resolved, key)
	}
	if len(before) > 0 || len(resolved.Pods) > 0 {
		b.changed()
	}
	return before
}
