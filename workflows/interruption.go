package workflows

// Reasons for which a node goes away because its instance does, or cannot be relied on any more. The cloud decides that
// and nobody's budget, so its drain begins at once. The drain is the ordinary one, but that pods wait for a place elsewhere
// while there is time (GivesNotice). It respects PodDisruptionBudgets for as long as the claim's terminationGracePeriod
// says, also where the cloud ends the instance two minutes after its notice, as Karpenter's does. A pod that runs is deleted
// against its budget for no other reason. What it is to have instead is planned for at the notice, whatever protects it: it
// is lost with the instance.
const (
	// ReasonSpotInterrupted means that EC2 takes a spot instance back.
	ReasonSpotInterrupted = "SpotInterrupted"
	// ReasonReservationInterrupted means that a capacity reservation is taken back from the instance that runs in it.
	ReasonReservationInterrupted = "CapacityReservationInterrupted"
	// ReasonRebalanceRecommended means that EC2 may take a spot instance back soon.
	ReasonRebalanceRecommended = "RebalanceRecommended"
	// ReasonScheduledChange means that AWS will work on the machine below the instance.
	ReasonScheduledChange = "ScheduledChange"
	// ReasonInstanceStopping means that somebody stops the instance or has stopped it.
	ReasonInstanceStopping = "InstanceStopping"
	// ReasonInstanceTerminated means that somebody else than Tenon terminates the instance or has done so.
	ReasonInstanceTerminated = "InstanceTerminated"
	// ReasonInstanceStatusImpaired and ReasonSystemStatusImpaired mean that the instance, or the machine below it, fails
	// EC2's checks. What runs there runs no longer, so nobody waits for its pods' budgets.
	ReasonInstanceStatusImpaired = "InstanceStatusImpaired"
	ReasonSystemStatusImpaired   = "SystemStatusImpaired"
)

// GivesNotice says whether an instance that goes for a reason serves for a while yet: the pods of its node stay until there
// is a place for them elsewhere, or until the last moment at which they can end gracefully.
func GivesNotice(reason string) bool {
	switch reason {
	case ReasonSpotInterrupted, ReasonReservationInterrupted, ReasonScheduledChange, ReasonRebalanceRecommended:
		return true
	}
	return false
}
