// Package place decides where pods go: onto nodes that exist, onto claims in flight, or onto nodes to be bought. Pack
// is its entry point.
//
// Pods that nothing distinguishes are one PodGroup. Groups are distributed over the existing nodes, and over the
// domains that rules leave them. Pods that find no room become DemandChunks, for which machines are bought. At the end
// the binding of all pods is simulated, as the kube-scheduler would do it, and every pod left without a place gets a
// reason.
//
// Reading order: provided, shape, pod_group, obstacle, existing, demand_chunk, caps, headroom, demand, reasons,
// candidate_types, growthpause, planned_node, buyer, constraints, priority, distribution, fill, buy, spotpools, claim,
// choices, domain_rule, choice, promised, domains, audit, bundle, sharing, distribute, spare_room, pack, placed, bound.
package place
