package starter

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/tenon-sh/tenon/cluster"
)

// maxRetryPause is the longest pause between two tries of what failed, so that soon after Temporal is back everything is.
const maxRetryPause = 10 * time.Second

// queue holds the claims and Nodes that are to be looked at. It merges events of one object, and retries ever more slowly.
type queue struct {
	workqueue.TypedRateLimitingInterface[cluster.Event]
}

func newQueue() queue {
	return queue{workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cluster.Event](
		200*time.Millisecond, maxRetryPause))}
}

// claimEvent is the event that has a claim looked at.
func claimEvent(name string) cluster.Event {
	return cluster.Event{Kind: cluster.ClaimChanged, Name: name}
}
