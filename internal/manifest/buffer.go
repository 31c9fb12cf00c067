package manifest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	autoscalingv1beta1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/plan"
)

// buffers adds the virtual pods that stand for the room CapacityBuffers ask for.
func (b *builder) buffers() {
	for _, o := range only[*autoscalingv1beta1.CapacityBuffer](b.objects) {
		buffer := o.value
		if !buffer.Active() {
			b.notes = append(b.notes, fmt.Sprintf("CapacityBuffer %s has another provisioning strategy and is ignored", o.place.key()))
			continue
		}
		template, scale, wrong := b.bufferTemplate(o.place, buffer)
		if wrong != nil {
			b.wrong = append(b.wrong, wrong)
			continue
		}
		completed := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		completed.Namespace = o.place.namespace
		b.admit(completed)
		model := b.interner.VirtualPod(o.place.namespace, &corev1.PodTemplateSpec{ObjectMeta: completed.ObjectMeta, Spec: completed.Spec})
		wish := plan.Wish{Replicas: buffer.Spec.Replicas, Percentage: buffer.Spec.Percentage, Scale: scale, Limits: buffer.Spec.Limits}
		count, err := wish.Count(model.Class.Requests)
		if err != nil {
			b.wrong = append(b.wrong, &mistake{place: o.place, field: "spec", problem: err.Error()})
			continue
		}
		if buffer.UID == "" {
			buffer.UID = types.UID("CapacityBuffer/" + o.place.key())
		}
		b.snapshot.Pending = append(b.snapshot.Pending, model.VirtualPods(buffer.UID, buffer.Name, count)...)
	}
}

// bufferTemplate returns the template for which a buffer keeps room, and the number of replicas to which its percentage
// refers.
func (b *builder) bufferTemplate(at place, buffer *autoscalingv1beta1.CapacityBuffer) (*corev1.PodTemplateSpec, int32, *mistake) {
	spec := &buffer.Spec
	if (spec.PodTemplateRef == nil) == (spec.ScalableRef == nil) {
		return nil, 0, &mistake{place: at, field: "spec", problem: "name exactly one of podTemplateRef and scalableRef"}
	}
	wanted := owner{kind: "PodTemplate", namespace: at.namespace}
	field := "spec.podTemplateRef.name"
	if spec.ScalableRef != nil {
		wanted.kind, wanted.name, field = spec.ScalableRef.Kind, spec.ScalableRef.Name, "spec.scalableRef.name"
	} else {
		wanted.name = spec.PodTemplateRef.Name
	}
	for i := range b.objects {
		if ownerOf(b.objects[i].place) != wanted {
			continue
		}
		switch v := b.objects[i].value.(type) {
		case *corev1.PodTemplate:
			return v.Template.DeepCopy(), 0, nil
		case *appsv1.Deployment:
			return v.Spec.Template.DeepCopy(), scaleOf(v.Spec.Replicas), nil
		case *appsv1.ReplicaSet:
			return v.Spec.Template.DeepCopy(), scaleOf(v.Spec.Replicas), nil
		case *appsv1.StatefulSet:
			return v.Spec.Template.DeepCopy(), scaleOf(v.Spec.Replicas), nil
		}
	}
	return nil, 0, &mistake{place: at, field: field, problem: fmt.Sprintf("%s %s/%s is not among the manifests: add it", wanted.kind, wanted.namespace, wanted.name)}
}

func scaleOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
