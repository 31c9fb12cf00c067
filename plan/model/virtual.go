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

// MostVirtual limits the pods that one buffer keeps room for, so that a mistyped number cannot exhaust memory.
const MostVirtual = 10_000

// Wish is how much room a CapacityBuffer asks for.
type Wish struct {
	// Replicas and Percentage are the buffer's; nil if it does not set them. Percentage is of Scale.
	Replicas, Percentage *int32
	Scale                int32
	// Limits bound the sum of what the pods request.
	Limits corev1.ResourceList
}

// Count returns how many pods with these requests the wish is for: the larger of Replicas and Percentage of Scale, rounded
// up, as far as Limits allow. If neither is set, it returns as many as Limits allow, or zero without Limits. It fails if
// Limits alone would decide, but name nothing that the pods request. It never returns more than MostVirtual.
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

// VirtualPod returns a pod that asks of a node what a pod made from the template would, as a model for the virtual pods of
// buffers. It leaves out volumes with a claim, because the room is wanted before it is known which ones the pods will
// mount, as well as scheduling gates and the node's name.
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

// VirtualPods returns the pods of a buffer, of which p is the model. They are the same in every process: a pod's UID
// follows from the buffer's, its number and what it asks of a node, so that a promise to a pod of another shape is not
// kept.
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
