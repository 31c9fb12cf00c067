// Package devices decides whether a node has the devices that pods claim by dynamic resource allocation.
//
// An Index knows the claims, classes and slices of one snapshot. Needs is what the claims of a pod ask of its node: labels,
// where a claim is allocated already, and devices, where it is not. A Room is the devices of one node that are free: a node
// that exists, one that is on its way, or one that might be bought. Which devices satisfy a claim is decided by the allocator
// of the kube-scheduler (k8s.io/dynamic-resource-allocation), with the features that Kubernetes 1.36 turns on by default.
//
// The devices of a node that exists are what its drivers have published. As long as a node is not initialized, the devices of
// a driver that has not published yet are those of a template. Nodes to be bought have the devices of their templates. A
// NodeOverlay gives the templates of the drivers that it describes (annotation tenon.sh/device-templates); those of other
// drivers are learnt from what they have published for nodes of the same NodePool and instance type. An annotation of the NodePool
// keeps that (model/learnt_devices.go).
//
// A claim that several pods use is allocated once: the first of them decides where the others go, and pods whose claims
// are to be allocated from devices of a node are planned for one node. A claim that was made from a template is made anew
// for the successor of its pod, so it does not keep the pod on its node; a claim that was made by hand and is allocated does.
//
// Pods that do not exist yet, those of DaemonSets on a node that starts and the virtual ones of CapacityBuffers, have the claims
// that would be made from their templates.
//
// What is not known: devices that nodes reach by their zone are not counted for nodes that do not exist yet.
//
// Reading order: allocate, needs, view, index, taints, daemons, claims, room, explain.
package devices
