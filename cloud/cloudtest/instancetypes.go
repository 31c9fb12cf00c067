package cloudtest

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
)

func (s *suite) instanceTypesAreSane() {
	class := s.class()
	types := s.instanceTypes(class)
	if len(types) == 0 {
		s.Fatal("there are no instance types")
	}
	if !slices.IsSortedFunc(types, func(a, b *cloud.InstanceType) int { return cmp.Compare(a.Name, b.Name) }) {
		s.Error("the types are not ordered by name")
	}
	zones := make(map[string]bool)
	for _, zone := range s.harness.Zones(class) {
		zones[zone] = true
	}
	for _, instanceType := range types {
		s.checkLabels(instanceType)
		s.checkResources(instanceType)
		s.checkOfferings(instanceType, zones)
	}
	for _, e := range s.cloud.Excluded(class) {
		offered := slices.ContainsFunc(types, func(t *cloud.InstanceType) bool { return t.Name == e.InstanceType })
		if e.Why == "" || offered != (e.Resource != "") {
			s.Errorf("%s is excluded (%q), and offered: %t", e.InstanceType, e.Why, offered)
		}
	}
	again := s.instanceTypes(class)
	for i := range types {
		if len(again) != len(types) || again[i] != types[i] {
			s.Fatal("asking again without anything having changed made new values")
		}
	}
}

func (s *suite) checkLabels(t *cloud.InstanceType) {
	for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable} {
		if t.Labels[key] == "" {
			s.Errorf("%s has no label %s", t.Name, key)
		}
	}
	if t.Labels[corev1.LabelInstanceTypeStable] != t.Name {
		s.Errorf("%s is labelled as %s", t.Name, t.Labels[corev1.LabelInstanceTypeStable])
	}
}

func (s *suite) checkResources(t *cloud.InstanceType) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
		capacity, allocatable := t.Capacity[name], t.Allocatable[name]
		if capacity.Sign() <= 0 {
			s.Errorf("%s has a capacity of %s %s", t.Name, capacity.String(), name)
		}
		if allocatable.Sign() < 0 || allocatable.Cmp(capacity) > 0 {
			s.Errorf("%s can allocate %s of %s %s", t.Name, allocatable.String(), capacity.String(), name)
		}
	}
}

func (s *suite) checkOfferings(t *cloud.InstanceType, zones map[string]bool) {
	if len(t.Offerings) == 0 {
		s.Errorf("%s has no offerings", t.Name)
	}
	if !slices.IsSortedFunc(t.Offerings, func(a, b cloud.Offering) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	}) {
		s.Errorf("the offerings of %s are not ordered by zone and capacity type", t.Name)
	}
	for _, o := range t.Offerings {
		if o.Available && o.Price <= 0 {
			s.Errorf("%s is available in %s as %s at no price", t.Name, o.Zone, o.CapacityType)
		}
		if !zones[o.Zone] {
			s.Errorf("%s is offered in %s, where the class launches nothing", t.Name, o.Zone)
		}
	}
}
