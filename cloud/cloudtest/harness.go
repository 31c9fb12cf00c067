package cloudtest

import (
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// Harness controls the cloud behind a provider. A method that cannot do its work fails the test.
type Harness interface {
	// NodeClass returns a class that can be launched from, without a status. Each call returns a new value.
	NodeClass() cloud.NodeClass
	// Zones returns the zones in which nodes of a resolved class are launched.
	Zones(class cloud.NodeClass) []string
	// SelectsNothing returns classes of which a part selects nothing, by the condition that has to say so. It is empty if
	// the provider's classes select nothing.
	SelectsNothing() map[string]cloud.NodeClass
	// Advance moves the provider's clock and the cloud's.
	Advance(d time.Duration)
	// LoseLaunchReplies lets the next n launches happen but drops their replies.
	LoseLaunchReplies(n int)
	// LimitCapacity limits the pools that match the key to that many more instances in total. Empty fields of the key
	// match anything. A second call replaces the first, and Unlimited removes the limit.
	LimitCapacity(key cloud.OfferingKey, remaining int)
	// HideNewInstances keeps new instances from being listed until the clock has advanced by d.
	HideNewInstances(d time.Duration)
	// ForeignInstance launches an instance that carries the tags another owner would give it, and returns its id.
	ForeignInstance() string
	// Alive returns the ids of all instances that have been launched and not terminated, whoever owns them.
	Alive() []string
}

// Unlimited is the capacity of a healthy cloud.
const Unlimited = -1
