package model

import (
	corev1 "k8s.io/api/core/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
)

// completeTemplate fills in what the API server fills in for pods, but not for templates of pods: requests follow from
// limits, those of the pod as a whole from those of its containers, and the ports of a pod in its node's network are the
// node's (k8s.io/kubernetes/pkg/apis/core/v1, defaults of Pod). The overhead of a RuntimeClass is not filled in: the
// class is not known here.
func completeTemplate(pod *corev1.Pod) {
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for c := range containers {
			container := &containers[c]
			for name, limit := range container.Resources.Limits {
				requestUnlessSet(&container.Resources, name, limit)
			}
			for p := range container.Ports {
				if port := &container.Ports[p]; spec.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
	whole := spec.Resources
	if whole == nil || len(whole.Requests)+len(whole.Limits) == 0 {
		return
	}
	for name, amount := range resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{}) {
		if resource.IsSupportedPodLevelResource(name) {
			requestUnlessSet(whole, name, amount)
		}
	}
	for name, limit := range whole.Limits {
		requestUnlessSet(whole, name, limit)
	}
}

// ApplyLimitRanges gives a container what the LimitRanges of its namespace say containers get that name nothing themselves.
func ApplyLimitRanges(container *corev1.ResourceRequirements, ranges []*corev1.LimitRange) {
	for _, limits := range ranges {
		for i := range limits.Spec.Limits {
			item := &limits.Spec.Limits[i]
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for name, amount := range item.DefaultRequest {
				requestUnlessSet(container, name, amount)
			}
			for name, amount := range item.Default {
				if _, limited := container.Limits[name]; !limited {
					requestUnlessSet(container, name, amount)
				}
			}
		}
	}
}

func requestUnlessSet(resources *corev1.ResourceRequirements, name corev1.ResourceName, amount quantities.Quantity) {
	if _, set := resources.Requests[name]; set {
		return
	}
	if resources.Requests == nil {
		resources.Requests = corev1.ResourceList{}
	}
	resources.Requests[name] = amount
}
