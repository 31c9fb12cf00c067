// Package model is what the planner knows and what it answers: the Snapshot of a cluster, its nodes, pods and volumes, the
// Input of a question, and the plans, commands and verdicts that come out. It reduces objects of Kubernetes to what a plan
// needs of them, and decides nothing.
//
// An Interner makes equal things one thing, so that ten thousand pods of forty shapes are forty classes. Conditions on
// labels are terms here, whoever asks for them (requirement.go, volume_terms.go).
//
// Reading order: storage, resources, pod, requirement, template, intern, growth, node, protection, pdb, departure,
// device, reduce_pod, custom_label, result, node_claim, disruption, volume_terms, virtual, snapshot, input, reduce_node,
// drain_pod, tied, reduce_storage, waiting.
package model
