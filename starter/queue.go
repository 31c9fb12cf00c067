package starter

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/tenon-sh/tenon/cluster"
)

// maxRetryPause is the longest pause between two retries, so that everything recovers soon after Temporal is back.
const maxRetryPause = 10 * time.Second

// queue holds the claims and Nodes to look at. It merges the events of one object, and retries with exponential
// backoff.
type queue struct {
	workqueue.TypedRateLimitingInterface[cluster.Event]
}

func newQueue() queue {
	return queue{workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cluster.Event](
		200*time.Millisecond, maxRetryPause))}
}

// claimEvent is the event that queues a claim.
func claimEvent(name string) cluster.Event {
	return cluster.Event{Kind: cluster.ClaimChanged, Name: name}
}
