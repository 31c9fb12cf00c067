package cloud

import "time"

// InterruptionKind says what the cloud has announced about an instance.
type InterruptionKind string

const (
	// SpotInterruption means that AWS will take a spot instance away two minutes after the notice.
	SpotInterruption InterruptionKind = "SpotInterruption"
	// RebalanceRecommendation means that a spot instance is likelier than others to be taken away. Nothing has happened
	// yet.
	RebalanceRecommendation InterruptionKind = "RebalanceRecommendation"
	// ReservationInterruption means that the owner of an interruptible capacity reservation will take it back, and with
	// it the instance, two minutes after the notice.
	ReservationInterruption InterruptionKind = "ReservationInterruption"
	// CapacityBlockEnding means that the capacity block of an instance ends: EC2 terminates the instance ten minutes after
	// the notice.
	CapacityBlockEnding InterruptionKind = "CapacityBlockEnding"
	// InstanceStopping means that an instance is being stopped or has stopped.
	InstanceStopping InterruptionKind = "InstanceStopping"
	// InstanceTerminating means that an instance is shutting down for good.
	InstanceTerminating InterruptionKind = "InstanceTerminating"
	// InstanceTerminated means that an instance is gone for good.
	InstanceTerminated InterruptionKind = "InstanceTerminated"
	// ScheduledChange means that the cloud will work on the host of an instance: maintenance, retirement, a reboot.
	ScheduledChange InterruptionKind = "ScheduledChange"
	// InstanceImpaired means that an instance fails the cloud's check of its operating system and network.
	InstanceImpaired InterruptionKind = "InstanceImpaired"
	// SystemImpaired means that the host of an instance fails the cloud's check.
	SystemImpaired InterruptionKind = "SystemImpaired"
)

// Interruption is what the cloud has announced about instances, in this cluster or not.
type Interruption struct {
	Kind InterruptionKind
	// Instances are instance ids.
	Instances []string
	// At is when the cloud said so; zero where it does not say.
	At time.Time
}

// Notice is a message about interruptions. It is delivered again unless it is acknowledged.
type Notice struct {
	// Receipt acknowledges the notice.
	Receipt string
	// Interruption is the content of the message. A message that announces no interruption has no Kind.
	Interruption
	// Err says why the message could not be understood. Delivering it again does not help.
	Err error
}
