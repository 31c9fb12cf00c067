package starter

import (
	"time"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// interruption is what an announcement of the cloud leads to.
type interruption struct {
	// ending is why the claim ends; empty if it does not.
	ending string
	// lost says that nothing runs on the instance any more, forced that nothing on it is worth waiting for.
	lost, forced bool
	// takesBack says that the cloud wants the capacity itself.
	takesBack bool
	// announces says that the end of the instance is known: it comes notice after the announcement.
	announces bool
	notice    time.Duration
	// event and message are what people read; the events are Karpenter's.
	event, message string
	// label is the kind's name in Karpenter's metrics.
	label string
}

// consequence returns what an announcement leads to here, and whether it leads to anything. A rebalance recommendation
// ends the claim only with replacesAtRisk.
func consequence(announced cloud.InterruptionKind, replacesAtRisk bool) (interruption, bool) {
	is, known := interruptionKinds[announced]
	if announced == cloud.RebalanceRecommendation && replacesAtRisk {
		is.ending, is.takesBack = workflows.ReasonRebalanceRecommended, true
	}
	return is, known
}

// Reasons, Karpenter's, of the Events about what the cloud announces.
const (
	// eventSpotInterrupted says that EC2 reclaims a spot instance in two minutes.
	eventSpotInterrupted = "SpotInterrupted"
	// eventRebalance says that EC2 may reclaim a spot instance soon. Only with --rebalance=replace does that lead to anything.
	eventRebalance = "SpotRebalanceRecommendation"
	// eventReservationInterrupted says that the capacity reservation of an instance is reclaimed in two minutes.
	eventReservationInterrupted = "CapacityReservationInstanceInterrupted"
	// eventBlockEnding says that the capacity block of an instance ends.
	eventBlockEnding = "CapacityBlockEnding"
	// eventInstanceUnhealthy says that the host has scheduled maintenance, or that the instance or its host fails EC2's status check.
	eventInstanceUnhealthy = "InstanceUnhealthy"
	// eventInstanceStopping says that somebody stops the instance.
	eventInstanceStopping = "InstanceStopping"
	// eventInstanceTerminating says that somebody other than Tenon terminates the instance, or has done so.
	eventInstanceTerminating = "InstanceTerminating"
	// eventTerminatingOnInterruption says that the node is drained and its instance terminated because of an interruption.
	eventTerminatingOnInterruption = "TerminatingOnInterruption"
)

// interruptionKinds are all announcements that lead to something.
var interruptionKinds = map[cloud.InterruptionKind]interruption{
	cloud.SpotInterruption: {ending: workflows.ReasonSpotInterrupted, takesBack: true, announces: true, notice: 2 * time.Minute,
		event: eventSpotInterrupted, message: "EC2 reclaims this spot instance in two minutes", label: "spot_interrupted"},
	cloud.RebalanceRecommendation: {
		event: eventRebalance, message: "EC2 may reclaim this spot instance soon", label: "rebalance_recommendation"},
	cloud.ReservationInterruption: {ending: workflows.ReasonReservationInterrupted, takesBack: true, announces: true, notice: 2 * time.Minute,
		event: eventReservationInterrupted, message: "The capacity reservation of this instance is reclaimed in two minutes", label: "capacity_reservation_interrupted"},
	cloud.CapacityBlockEnding: {ending: workflows.ReasonCapacityBlockEnding, announces: true, notice: blockNotice,
		event: eventBlockEnding, message: "The capacity block of this instance ends; EC2 terminates the instance within ten minutes", label: "capacity_block_ending"},
	cloud.ScheduledChange: {ending: workflows.ReasonScheduledChange,
		event: eventInstanceUnhealthy, message: "AWS has scheduled maintenance for the host of this instance", label: "scheduled_change"},
	cloud.InstanceStopping: {ending: workflows.ReasonInstanceStopping, announces: true,
		event: eventInstanceStopping, message: "The instance is being stopped", label: "instance_stopped"},
	cloud.InstanceTerminating: {ending: workflows.ReasonInstanceTerminated, announces: true,
		event: eventInstanceTerminating, message: "The instance is being terminated", label: "instance_terminated"},
	cloud.InstanceTerminated: {ending: workflows.ReasonInstanceTerminated, lost: true,
		event: eventInstanceTerminating, message: "The instance has been terminated", label: "instance_terminated"},
	cloud.InstanceImpaired: {ending: workflows.ReasonInstanceStatusImpaired, forced: true,
		event: eventInstanceUnhealthy, message: "The instance fails EC2's status check", label: "instance_status"},
	cloud.SystemImpaired: {ending: workflows.ReasonSystemStatusImpaired, forced: true,
		event: eventInstanceUnhealthy, message: "The host of this instance fails EC2's status check", label: "system_status"},
}

// announced says whether the cloud announces something that is still to come.
func announced(kind cloud.InterruptionKind) bool {
	return kind == cloud.SpotInterruption || kind == cloud.ReservationInterruption || kind == cloud.ScheduledChange
}
