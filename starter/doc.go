// Package starter is the edge between Kubernetes and Temporal: it turns what it sees in the cluster into workflow
// starts and signals.
//
// Every edge is level-triggered. A subscription to the mirror only says that something may have changed. What an edge
// then does follows from what the mirror shows, and is evaluated again after every failure, after every restart and
// when another replica takes over. Starting a workflow that runs and signalling a fact that is known change nothing, so
// a missed or duplicate event costs a delay or an action, never a node.
//
//	pods are pending             → Provisioning is signalled (pods.go)
//	a buffer lacks capacity      → Provisioning is signalled (buffers.go)
//	a static pool lacks nodes    → Provisioning is signalled (static.go)
//	a node leaves with its pods  → Provisioning is signalled (leaving.go)
//	a claim was made by hand     → its Launch is started (launches.go)
//	a claim is deleted           → its NodeClaim workflow is signalled, and started where it is missing (deletions.go)
//	a Node is deleted            → its NodeClaim workflow is signalled (nodes.go)
//	a Node is gone undrained     → its NodeClaim workflow is signalled (nodegone.go)
//	an instance is interrupted   → its NodeClaim workflow is signalled (notices.go, interruption.go, capacityblocks.go)
//	a node will not recover      → its NodeClaim workflow is signalled (repair.go)
//	expiry is no longer graceful → the workflows of claims that have expired are signalled (expiration.go)
//	a machine is overdue         → planning workflows are signalled to avoid its offering, from the second on (overdue.go)
//	a blocked drain can continue → its Drain is signalled (drains.go)
//	something is paused, or resumed → Events and metrics say so (pauses.go); every edge looks whether it may act
//	a maintenance window opens, or closes → Events and metrics say so (windows.go); what has waited for it goes on
//	a NodePool is only observed  → Events, metrics and the log say what would be done (observations.go)
//	a node is not needed         → Disruption is signalled (disruption.go)
//	a person has to approve that → an Approval is started, or told that it is outdated (approvals.go)
//	every ten minutes, two while anything changes → a Schedule starts the Sweep for what was missed (sweep.go, unrest.go)
//
// Each edge is a type of its own with only what it needs; Run creates the edges and runs them concurrently
// (starter.go). All of them reach workflows through one signaller (signaller.go).
//
// What only people and kubectl read needs no workflow. Package status writes the status of resources, independently of
// the edges. The edges themselves only record Events: about what they do, about nodes that are kept (verdictevents.go)
// and about pods and nodes whose protection is not valid (misprotected.go).
//
// An idle cluster causes no actions besides those of the Sweep's schedule: an edge sends no signal that the mirror
// shows to be pointless.
//
// One replica does this at a time, the holder of a Lease. It is the Lease that Karpenter uses, so that the two never
// act on one cluster at once (election.go).
//
// Reading order: wait, mirror, dedup, signaller, queue, pending, provisioning, pods, static, buffers, leaving,
// launches, deletions, nodegone, interruptionkinds, windows, pauses, interruption, claims, nodes, changes, announcements, offerings,
// interruptionmetrics, capacityblocks, notices, overdue, allowances, drains, repair, expiration, sentences, kinds, signalled,
// eventlimiter, poolsettings, misprotected, protectionends, verdictevents, disruption, approvals, observations, unrest, fingerprint, sweep, election, starter.
package starter
