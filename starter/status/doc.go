// Package status writes what people and other tools read of Tenon with kubectl: the status of NodePools,
// EC2NodeClasses, NodeOverlays and CapacityBuffers, and the conditions of NodeClaims. No workflow takes part. The
// status follows from the mirror and from the provider's answers, is evaluated again after every change, and is written
// only when it changes.
//
//	NodePools      whether a pool may be used and why not, what its nodes add up to, and its hash (nodepool.go)
//	NodeClasses    what a class selects, and whether nodes can be launched from it (nodeclass.go)
//	NodeOverlays   whether an overlay applies, and why not (nodeoverlay.go)
//	ZonalShifts    Events on NodePools whose zones traffic leaves, or comes back to (zonalshift.go)
//	NodeClaims     the conditions Drifted, Consolidatable and ConsistentStateFound (nodeclaim.go)
//	Rollouts       how far the rollout of a pool's drifted nodes is, and what has stopped it (rollout.go)
//	Buffers        how much of the room that a buffer asks for is there (buffer.go)
//
// All but Buffers run by themselves: most as loops that look at everything again (loop.go), and NodeClasses with a
// queue, because looking at one class takes several EC2 calls. Buffers does not: starter's buffers, which finds missing
// capacity, already knows what is there.
//
// Reading order: loop, message, statichash, learntdevices, limits, window, nodepool, nodeclass, nodeoverlay, zonalshift, wish, consistency,
// verdict, classspecs, drift, nodeclaim, rolloutmetrics, rollout, buffer.
package status
