package model

import (
	corev1 "k8s.io/api/core/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
)

// completeTemplate applies the defaults that the API server applies to pods, but not to pod templates: requests default to
// limits, pod-level requests to those of the containers, and with hostNetwork host ports to container ports
// (k8s.io/kubernetes/pkg/apis/core/v1, defaults of Pod). It does not fill in the overhead of a RuntimeClass, because the
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

// ApplyLimitRanges sets the requests that a container does not set itself to the defaults of the LimitRanges of its
// namespace.
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
