package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The order of tasks when more wait than workers take: Temporal's priorities, of which 1 is the highest.
const (
	// priorityInterrupted is for nodes that the cloud interrupts: their pods have minutes.
	priorityInterrupted = 1
	// priorityPending is for pods that wait for a node: plans, launches, and nodes that join.
	priorityPending = 2
	// priorityOrdered is for what people have ordered, and for everything without a priority of its own.
	priorityOrdered = 3
	// priorityTidying is for nodes whose removal can wait: those that are not needed, drifted or expired.
	priorityTidying = 4
)

// priorityOf returns the priority of removing a node for a reason.
func priorityOf(reason string) int {
	switch reason {
	case ReasonSpotInterrupted, ReasonReservationInterrupted, ReasonCapacityBlockEnding, ReasonInstanceStopping, ReasonInstanceTerminated:
		return priorityInterrupted
	case ReasonEmpty, ReasonExpired, string(karpv1.DisruptionReasonUnderutilized), string(karpv1.DisruptionReasonDrifted):
		return priorityTidying
	}
	return priorityOrdered
}

// hasten gives the activities of a workflow the priority of a reason.
func hasten(ctx workflow.Context, reason string) workflow.Context {
	return workflow.WithPriority(ctx, temporal.Priority{PriorityKey: priorityOf(reason)})
}
