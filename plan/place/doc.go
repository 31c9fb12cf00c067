// Package place decides where pods go: onto nodes that exist, onto claims in flight, or onto nodes that are to be bought.
// Pack is its question.
//
// Pods that nothing tells apart are one PodGroup. Groups are distributed over the nodes that are there and over the domains
// that rules leave them; what finds no room becomes a DemandChunk, which is bought for. At the end the binding of all pods
// is simulated, as the kube-scheduler would do it, and what stays without a place is told why.
//
// Reading order: shape, pod_group, obstacle, existing, demand_chunk, caps, headroom, demand, reasons,
// candidate_types, growthpause, planned_node, buyer, constraints, priority, distribution, fill, buy, spotpools, claim,
// choices, domain_rule, choice, promised, domains, audit, bundle, distribute, spare_room, pack, placed, bound.
package place
