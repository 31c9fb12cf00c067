package model

import (
	"slices"
	"strings"
)

// AsksDevice says whether a class asks for a device.
func AsksDevice(c *Class) bool {
	return slices.ContainsFunc(c.Requests.Extended, func(a Amount) bool { return IsDevice(a.Name) })
}

// HasDevices says whether a node has devices, used or not.
func (n *Node) HasDevices() bool {
	return slices.ContainsFunc(n.Allocatable.Extended, func(a Amount) bool { return IsDevice(a.Name) })
}

// IsDevice says whether a resource is a device that makes a machine dear, not something every machine has.
func IsDevice(name string) bool {
	return !strings.HasPrefix(name, "vpc.amazonaws.com/") && !strings.HasPrefix(name, "hugepages-")
}
