package v1

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ResourceNodes is the resource under which limits and status count nodes.
const ResourceNodes corev1.ResourceName = "nodes"

// Limits bound the sum of a pool's nodes, by resource. The resource "nodes" is their number.
type Limits corev1.ResourceList

// ExceededBy returns an error that names the first resource, in alphabetical order, of which used is more than the
// limit, and nil if there is none. A resource without a limit has no bound.
func (l Limits) ExceededBy(used corev1.ResourceList) error {
	names := make([]corev1.ResourceName, 0, len(used))
	for name := range used {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		amount := used[name]
		if limit, ok := l[name]; ok && amount.Cmp(limit) > 0 {
			return fmt.Errorf("%s: %s is more than the limit of %s", name, amount.String(), limit.String())
		}
	}
	return nil
}
