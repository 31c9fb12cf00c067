package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// MostVirtual bounds the pods one buffer keeps room for, so that one mistyped number cannot fill the memory.
const MostVirtual = 10_000

// Wish is how much room a CapacityBuffer asks for.
type Wish struct {
	// Replicas and Percentage are the buffer's; nil where it does not say. Scale is what Percentage is of.
	Replicas, Percentage *int32
	Scale                int32
	// Limits bound the sum of what the pods request.
	Limits corev1.ResourceList
}

// Count is how many pods of these requests the wish is for: the larger of Replicas and Percentage of Scale, rounded up,
// as far as Limits allow, and as many as Limits allow where neither is given. The error is that nothing bounds the
// number. No more than MostVirtual are ever wished for.
func (w *Wish) Count(requests Resources) (int, error) {
	wanted := max(int64(ptr.Deref(w.Replicas, 0)), (int64(ptr.Deref(w.Percentage, 0))*int64(w.Scale)+99)/100)
	if w.Replicas == nil && w.Percentage == nil && len(w.Limits) > 0 {
		wanted = math.MaxInt64
	}
	limits := ResourcesOf(w.Limits)
	for name := range w.Limits {
		if each := requests.Get(string(name)); each > 0 {
			wanted = min(wanted, max(0, limits.Get(string(name)))/each)
		}
	}
	if wanted == math.MaxInt64 {
		return 0, fmt.Errorf("limits name no resource that the pods request, and neither replicas nor percentage is set")
	}
	return int(min(wanted, MostVirtual)), nil
}

// VirtualPod is what a pod made from a template would ask of a node, as a model for the virtual pods of buffers.
// Volumes are left out: the room is wanted before it is known which ones the pods will mount. So are scheduling gates
// and whatever names one node.
func (i *Interner) VirtualPod(namespace string, template *corev1.PodTemplateSpec) *Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: template.Labels},
		Spec:       *template.Spec.DeepCopy(),
	}
	spec := &pod.Spec
	spec.NodeName, spec.SchedulingGates = "", nil
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
	completeTemplate(pod)
	model := i.Pod(pod)
	model.Virtual, model.Unschedulable = true, true
	model.Priority, model.Critical = math.MinInt32, false
	return model
}

// VirtualPods are the pods of a buffer of which this is the model. They are the same whoever makes them: a pod's UID follows from
// the buffer's, its number and what it asks of a node, so that what was promised to one of another shape is not kept.
func (p *Pod) VirtualPods(buffer types.UID, name string, count int) []*Pod {
	pods := make([]*Pod, count)
	for n := range pods {
		pod := *p
		key := AppendString(nil, string(buffer), strconv.Itoa(n))
		sum := sha256.Sum256(append(key, p.Class.ID...))
		pod.UID = types.UID("virtual-" + hex.EncodeToString(sum[:16]))
		pod.Name = "capacity-buffer-" + name + "-" + strconv.Itoa(n)
		pods[n] = &pod
	}
	return pods
}
