package starter

import (
	"context"
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// Interruptions is the source of the cloud's notices that it takes instances away or that they are impaired.
type Interruptions interface {
	// Queue names the queue that the notices come from; if it is empty there is none, and only Unhealthy and EndingBlocks may be called.
	Queue() string
	// Receive waits for notices and returns some, or none after a while. A notice that is not deleted is delivered
	// again.
	Receive(ctx context.Context) ([]cloud.Notice, error)
	// Delete removes notices that have been handled.
	Delete(ctx context.Context, receipts []string) error
	// Unhealthy returns the instances that fail the cloud's checks, and those with scheduled maintenance.
	Unhealthy(ctx context.Context) ([]cloud.Interruption, error)
	// EndingBlocks returns those of some capacity reservations that are capacity blocks about to end, and when the cloud
	// begins to terminate their instances.
	EndingBlocks(ctx context.Context, reservations []string) (map[string]time.Time, error)
	// Shun makes the cloud avoid an offering for a while.
	Shun(key cloud.OfferingKey)
}
