// Package model holds the input and output of the planner: the Snapshot of a cluster with its nodes, pods and volumes, the
// Input of one request, and the resulting plans, commands and verdicts. It reduces Kubernetes objects to what a plan needs,
// and decides nothing.
//
// An Interner shares equal values, so that ten thousand pods of forty shapes have forty classes. All conditions on labels
// are Terms here, whatever object they come from (requirement.go, volume_terms.go).
//
// Reading order: storage, resources, devices, learnt_devices, pod, requirement, tenancy, partition, template, intern, growth, node, protection, pdb,
// reduce_pod, result, node_claim, disruption, ordered, volume_terms, virtual, input, reduce_node, tied, reduce_storage,
// waiting.
package model
