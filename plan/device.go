package plan

import (
	"slices"
	"strings"
)

// asksDevice says whether a class asks for a device.
func asksDevice(c *Class) bool {
	return slices.ContainsFunc(c.Requests.Extended, func(a Amount) bool { return isDevice(a.Name) })
}

// hasDevices says whether a node has devices, used or not.
func (n *Node) hasDevices() bool {
	return slices.ContainsFunc(n.Allocatable.Extended, func(a Amount) bool { return isDevice(a.Name) })
}

// isDevice says whether a resource is a device that makes a machine dear, not something every machine has.
func isDevice(name string) bool {
	return !strings.HasPrefix(name, "vpc.amazonaws.com/") && !strings.HasPrefix(name, "hugepages-")
}
