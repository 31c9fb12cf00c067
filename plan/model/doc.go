// Package model is what the planner knows and what it answers: the Snapshot of a cluster, its nodes, pods and volumes, the
// Input of a question, and the plans, commands and verdicts that come out. It reduces objects of Kubernetes to what a plan
// needs of them, and decides nothing.
//
// An Interner makes equal things one thing, so that ten thousand pods of forty shapes are forty classes. Conditions on
// labels are terms here, whoever asks for them (requirement.go, volume_terms.go).
//
// Reading order: storage, resources, pod, requirement, template, intern, growth, node, protection, pdb, reduce_pod, result,
// node_claim, disruption, volume_terms, virtual, input, reduce_node, tied, reduce_storage, waiting.
package model
