package devices

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Providers returns the DeviceClasses that provide an extended resource, by the name of the resource. Of several with one name
// it returns the newest, and of those the first, as the API of DeviceClasses has it.
func Providers(known *model.Devices) map[string]string {
	if known == nil {
		return nil
	}
	providers := map[string]string{}
	for _, name := range model.SortedKeys(known.Classes) {
		class := known.Classes[name]
		if class.Spec.ExtendedResourceName == nil {
			continue
		}
		resource := *class.Spec.ExtendedResourceName
		if other := known.Classes[providers[resource]]; other == nil || other.CreationTimestamp.Before(&class.CreationTimestamp) {
			providers[resource] = name
		}
	}
	return providers
}

// Provided ends a sentence about an extended resource that no instance type has, if a DeviceClass provides it; it is empty
// otherwise.
func Provided(providers map[string]string, resource string) string {
	class := providers[resource]
	if class == "" {
		implicit, is := strings.CutPrefix(resource, resourcev1.ResourceDeviceClassPrefix)
		if !is {
			return ""
		}
		class = implicit
	}
	return ": DeviceClass " + class + " may provide it, which is planned for only if the pod claims the device by a ResourceClaim"
}
