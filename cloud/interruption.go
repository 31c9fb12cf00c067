package cloud

import "time"

// InterruptionKind says what the cloud has announced about an instance.
type InterruptionKind string

const (
	// SpotInterruption means that a spot instance is taken back two minutes after the notice.
	SpotInterruption InterruptionKind = "SpotInterruption"
	// RebalanceRecommendation means that a spot instance is likelier than others to be taken back. Nothing has happened.
	RebalanceRecommendation InterruptionKind = "RebalanceRecommendation"
	// ReservationInterruption means that the owner of an interruptible capacity reservation takes it back, and with it the
	// instance, two minutes after the notice.
	ReservationInterruption InterruptionKind = "ReservationInterruption"
	// InstanceStopping means that an instance is being stopped or has stopped.
	InstanceStopping InterruptionKind = "InstanceStopping"
	// InstanceTerminating means that an instance is shutting down for good.
	InstanceTerminating InterruptionKind = "InstanceTerminating"
	// InstanceTerminated means that an instance is gone for good.
	InstanceTerminated InterruptionKind = "InstanceTerminated"
	// ScheduledChange means that the cloud will work on the machine below an instance: maintenance, retirement, a reboot.
	ScheduledChange InterruptionKind = "ScheduledChange"
	// InstanceImpaired means that an instance fails the cloud's check of its operating system and network.
	InstanceImpaired InterruptionKind = "InstanceImpaired"
	// SystemImpaired means that the machine below an instance fails the cloud's check.
	SystemImpaired InterruptionKind = "SystemImpaired"
)

// Interruption is what the cloud has announced about instances, of this cluster or of anybody else.
type Interruption struct {
	Kind InterruptionKind
	// Instances are instance ids.
	Instances []string
	// At is when the cloud said so; zero where it does not say.
	At time.Time
}

// Notice is a message about interruptions that has to be acknowledged, or it comes again.
type Notice struct {
	// Receipt acknowledges the notice.
	Receipt string
	// Interruption is what it says. A notice that concerns nobody has no Kind.
	Interruption
	// Err says why the message could not be understood; it never will be.
	Err error
}
