package starter

import (
	"context"

	"github.com/tenon-sh/tenon/cloud"
)

// Interruptions is where the cloud announces that it takes instances away, or that they are of no more use.
type Interruptions interface {
	// Queue names the queue the notices come from; empty where there is none, and only Unhealthy may be asked.
	Queue() string
	// Receive waits for notices and returns some, or none after a while. One that is not deleted comes again.
	Receive(ctx context.Context) ([]cloud.Notice, error)
	// Delete says that notices have been handled.
	Delete(ctx context.Context, receipts []string) error
	// Unhealthy returns the instances that fail the cloud's checks, and those it means to work on.
	Unhealthy(ctx context.Context) ([]cloud.Interruption, error)
	// Shun leaves an offering alone for a while.
	Shun(key cloud.OfferingKey)
}
