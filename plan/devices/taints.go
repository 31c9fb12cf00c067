package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
)

// tainted returns a slice with the taints that DeviceTaintRules give its devices: the slice itself if they give none. A rule
// without a selector is for all devices, as for the kube-scheduler (k8s.io/dynamic-resource-allocation/resourceslice/tracker).
func (x *Index) tainted(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	patched := s
	for _, rule := range x.known.TaintRules {
		for i := range s.Spec.Devices {
			if !selects(rule.Spec.DeviceSelector, s, s.Spec.Devices[i].Name) {
				continue
			}
			if patched == s {
				patched = s.DeepCopy()
			}
			taint := &rule.Spec.Taint
			patched.Spec.Devices[i].Taints = append(patched.Spec.Devices[i].Taints, resourcev1.DeviceTaint{
				Key: taint.Key, Value: taint.Value, Effect: resourcev1.DeviceTaintEffect(taint.Effect), TimeAdded: taint.TimeAdded})
		}
	}
	return patched
}

// selects says that a rule is for a device of a slice.
func selects(selector *resourcev1beta2.DeviceTaintSelector, s *resourcev1.ResourceSlice, device string) bool {
	if selector == nil {
		return true
	}
	is := func(asked *string, value string) bool { return asked == nil || *asked == value }
	return is(selector.Driver, s.Spec.Driver) && is(selector.Pool, s.Spec.Pool.Name) && is(selector.Device, device)
}
