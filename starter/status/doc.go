// Package status writes what people and other tools read of Tenon with kubectl: the status of NodePools, EC2NodeClasses,
// NodeOverlays and CapacityBuffers, and the conditions of NodeClaims. No workflow takes part: it follows from the mirror
// and from what the provider says, is looked at again after every change, and is written only where it says something new.
//
//	NodePools      whether a pool may be used and why not, what its nodes add up to, and its hash (nodepool.go)
//	NodeClasses    what a class selects, and whether nodes can be launched from it (nodeclass.go)
//	NodeOverlays   whether an overlay applies, and why not (nodeoverlay.go)
//	NodeClaims     the conditions Drifted, Consolidatable and ConsistentStateFound (nodeclaim.go)
//	Buffers        how much of the room that a buffer asks for is there (buffer.go)
//
// The first four run by themselves: three as loops that look at everything again (loop.go), and NodeClasses with a queue,
// because a look at one class takes several calls of EC2. The last does not: whoever looks for room that is missing knows
// already what is there.
//
// Reading order: loop, message, statichash, nodepool, nodeclass, nodeoverlay, wish, consistency, verdict, classspecs,
// drift, nodeclaim, buffer.
package status
