package workflows

// Reasons for which a node is removed because its instance goes away or cannot be relied on any more. The cloud decides
// that, not a budget, so the drain begins at once. It is an ordinary drain, except that pods wait for a place elsewhere
// while there is time (GivesNotice). Like Karpenter's, it respects PodDisruptionBudgets for as long as the claim's
// terminationGracePeriod says, even if the cloud ends the instance two minutes after its notice. A running pod is deleted
// against its budget for no other reason. Its new place is planned at the notice, whatever protects the pod, since the pod
// is lost with the instance.
const (
	// ReasonSpotInterrupted means that EC2 is taking a spot instance back.
	ReasonSpotInterrupted = "SpotInterrupted"
	// ReasonReservationInterrupted means that a capacity reservation is taken back from the instance that runs in it.
	ReasonReservationInterrupted = "CapacityReservationInterrupted"
	// ReasonCapacityBlockEnding means that the capacity block of the instance ends. It leaves ten minutes.
	ReasonCapacityBlockEnding = "CapacityBlockEnding"
	// ReasonRebalanceRecommended means that EC2 may take a spot instance back soon.
	ReasonRebalanceRecommended = "RebalanceRecommended"
	// ReasonScheduledChange means that AWS will work on the machine under the instance.
	ReasonScheduledChange = "ScheduledChange"
	// ReasonInstanceStopping means that somebody is stopping or has stopped the instance.
	ReasonInstanceStopping = "InstanceStopping"
	// ReasonInstanceTerminated means that somebody other than Tenon is terminating or has terminated the instance.
	ReasonInstanceTerminated = "InstanceTerminated"
	// ReasonInstanceStatusImpaired means that the instance fails EC2's checks. Its pods no longer run, so the drain does not
	// wait for their budgets.
	ReasonInstanceStatusImpaired = "InstanceStatusImpaired"
	// ReasonSystemStatusImpaired means that the machine under the instance fails EC2's checks.
	ReasonSystemStatusImpaired = "SystemStatusImpaired"
)

// GivesNotice reports whether an instance that is removed for this reason keeps serving for a while. If so, the pods of its
// node stay until there is a place for them elsewhere, or until the last moment at which they can end gracefully.
func GivesNotice(reason string) bool {
	switch reason {
	case ReasonSpotInterrupted, ReasonReservationInterrupted, ReasonCapacityBlockEnding, ReasonScheduledChange, ReasonRebalanceRecommended:
		return true
	}
	return false
}
