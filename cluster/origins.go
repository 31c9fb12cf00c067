package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/plan"
)

// origin is an object that pods are made from: a PodTemplate, or a workload with a template of its own.
type origin struct {
	namespace, name string
	generation      int64
	// replicas is the number of replicas a workload asks for.
	replicas int32
	// model is a virtual pod of it.
	model *plan.Pod
}

func (s *origin) key() string { return s.namespace + "/" + s.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (s *origin) GetObjectMeta() metav1.Object { return named(s.namespace, s.name) }

// podTemplateKind is the kind that podTemplateRef refers to; the other kinds are those that scalableRef may name.
const podTemplateKind = "PodTemplate"

// origins are the objects of one kind that buffers may refer to. They are watched once a buffer refers to that kind.
type origins struct {
	feed *feed[*origin]
	need func()
}

// openOrigins prepares the watches of all kinds that CapacityBuffers may refer to.
func openOrigins(w *watches, changed func(old, now *origin, existed, exists bool)) map[string]origins {
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	key, byKind := (*origin).key, map[string]origins{}
	kind := func(kind string, opened *feed[*origin]) {
		byKind[kind] = origins{feed: opened, need: w.whenNeeded()}
	}
	kind(podTemplateKind, open(w, core, "podtemplates", &corev1.PodTemplate{}, nil, reducePodTemplate, key, changed))
	kind("Deployment", open(w, apps, "deployments", &appsv1.Deployment{}, nil, reduceDeployment, key, changed))
	kind("StatefulSet", open(w, apps, "statefulsets", &appsv1.StatefulSet{}, nil, reduceStatefulSet, key, changed))
	kind("ReplicaSet", open(w, apps, "replicasets", &appsv1.ReplicaSet{}, nil, reduceReplicaSet, key, changed))
	return byKind
}

// referred returns the kind and the name of the object that a buffer's pods are made from; empty where there is none.
func referred(buffer *bufferv1.CapacityBuffer) (kind, name string) {
	switch spec := &buffer.Spec; {
	case spec.PodTemplateRef != nil:
		return podTemplateKind, spec.PodTemplateRef.Name
	case spec.ScalableRef != nil && spec.ScalableRef.APIGroup == appsv1.GroupName && spec.ScalableRef.Kind != podTemplateKind:
		return spec.ScalableRef.Kind, spec.ScalableRef.Name
	}
	return "", ""
}

func reducePodTemplate(interner *plan.Interner, obj any) (*origin, error) {
	template, ok := obj.(*corev1.PodTemplate)
	if !ok {
		return nil, unexpected(template, obj)
	}
	return reduceOrigin(interner, template, &template.Template, new(int32(0))), nil
}

func reduceDeployment(interner *plan.Interner, obj any) (*origin, error) {
	deployment, ok := obj.(*appsv1.Deployment)
	if !ok {
		return nil, unexpected(deployment, obj)
	}
	return reduceOrigin(interner, deployment, &deployment.Spec.Template, deployment.Spec.Replicas), nil
}

func reduceStatefulSet(interner *plan.Interner, obj any) (*origin, error) {
	set, ok := obj.(*appsv1.StatefulSet)
	if !ok {
		return nil, unexpected(set, obj)
	}
	return reduceOrigin(interner, set, &set.Spec.Template, set.Spec.Replicas), nil
}

func reduceReplicaSet(interner *plan.Interner, obj any) (*origin, error) {
	set, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return nil, unexpected(set, obj)
	}
	return reduceOrigin(interner, set, &set.Spec.Template, set.Spec.Replicas), nil
}

// reduceOrigin reduces an object with a template. Without a number of replicas it assumes one, as the API server does.
func reduceOrigin(interner *plan.Interner, object metav1.Object, template *corev1.PodTemplateSpec, replicas *int32) *origin {
	reduced := &origin{
		namespace: interner.String(object.GetNamespace()), name: interner.String(object.GetName()),
		generation: object.GetGeneration(), replicas: 1, model: interner.VirtualPod(object.GetNamespace(), template),
	}
	if replicas != nil {
		reduced.replicas = *replicas
	}
	return reduced
}
