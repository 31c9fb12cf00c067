package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
)

// Why an activity gave up; see FailureType.
const (
	// FailureStaleRequest means the fleet request names something that is gone, and that it launched nothing.
	FailureStaleRequest = "StaleRequest"
	// FailureTokenSpent means the token was used for another request, so that instances may have been launched for the
	// group.
	FailureTokenSpent = "TokenSpent"
	// FailureNodeClassNotReady means the claim's node class cannot be launched from.
	FailureNodeClassNotReady = "NodeClassNotReady"
	// FailureInsufficientCapacity means no offering that the claims allow is available.
	FailureInsufficientCapacity = "InsufficientCapacity"
	// FailurePaused means that a person has paused launches.
	FailurePaused = "Paused"
	// FailureChanged means that the decision no longer fits the cluster.
	FailureChanged = "Changed"
	// FailureNotLost means that an instance runs that was reported gone.
	FailureNotLost = "NotLost"
	// FailureNotDrained means that pods have been bound to a node since it was drained.
	FailureNotDrained = "NotDrained"
)

// FailureType returns the type of the application error an activity gave up with, "" for any other error. Activities
// that give up say why by one of the Failure constants.
func FailureType(err error) string {
	var failure *temporal.ApplicationError
	if errors.As(err, &failure) {
		return failure.Type()
	}
	return ""
}

// isCanceled reports whether an activity ended because the workflow cancelled it.
func isCanceled(err error) bool {
	var canceled *temporal.CanceledError
	return errors.As(err, &canceled)
}

// alreadyStarted reports whether a child could not be started because its id is running.
func alreadyStarted(err error) bool {
	var running *temporal.ChildWorkflowExecutionAlreadyStartedError
	return errors.As(err, &running)
}

// terminated reports whether a person ended a child with Terminate.
func terminated(err error) bool {
	var ended *temporal.TerminatedError
	return errors.As(err, &ended)
}
