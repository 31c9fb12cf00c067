// Package starter is the edge between Kubernetes and Temporal: it turns what is seen in the cluster into the start of a
// workflow or a signal to one.
//
// Every edge is level-triggered. A subscription to the mirror only says that something may have changed; what is then
// done follows from what the mirror shows, and is asked again after every failure, after every restart and whenever
// another replica takes over. Starting a workflow that runs and signalling a fact that is known change nothing, so a
// missed or doubled event costs a delay or an action, never a node.
//
//	pods are pending             → Provisioning is signalled (pods.go)
//	a buffer's room is missing   → Provisioning is signalled (buffers.go)
//	a static pool lacks nodes    → Provisioning is signalled (static.go)
//	a node leaves with its pods  → Provisioning is signalled (leaving.go)
//	a claim was made by hand     → its Launch is started (launches.go)
//	a claim is deleted           → its NodeClaim workflow is signalled, and started where it is missing (deletions.go)
//	a Node is deleted            → its NodeClaim workflow is signalled (nodes.go)
//	a Node is gone undrained     → its NodeClaim workflow is signalled (nodegone.go)
//	an instance is taken away    → its NodeClaim workflow is signalled (notices.go, interruption.go)
//	a node will not recover      → its NodeClaim workflow is signalled (repair.go)
//	expiry is no longer graceful → the workflows of claims that have expired are signalled (expiration.go)
//	a machine does not come      → whoever plans is told to leave its offering alone, if it is the second (overdue.go)
//	a blocked drain may go on    → its Drain is signalled (drains.go)
//	a node is not needed         → Disruption is signalled (disruption.go)
//	every ten minutes, and two while anything changes → a Schedule starts the Sweep, which finds what all of this has missed (sweep.go, unrest.go)
//
// Each edge is a type of its own, with what it needs and no more; Run makes them and has them run side by side
// (starter.go). What they say to workflows they say through one signaller (signaller.go).
//
// What only people and kubectl read needs no workflow. The status of resources is kept by package status, beside the edges.
// The edges themselves only record Events about what they do, about nodes that stay (verdictevents.go) and about nodes that
// are protected otherwise than somebody meant (misprotected.go).
//
// An idle cluster causes no action at all besides the Sweep's schedule: nothing is signalled that a look at the mirror
// says to be pointless.
//
// One replica does this at a time, the holder of a Lease. It is the Lease Karpenter uses, so that the two never act on
// one cluster at once (election.go).
//
// Reading order: wait, mirror, dedup, signaller, queue, pending, provisioning, pods, static, buffers, leaving, launches, deletions,
// nodegone, interruptionkinds, interruption, claims, nodes, changes, announcements, offerings, interruptionmetrics, notices,
// overdue, allowances, drains, repair, expiration, sentences, kinds, signalled, eventlimiter, poolsettings, misprotected,
// verdictevents, disruption, unrest, fingerprint, sweep, election, starter.
package starter
