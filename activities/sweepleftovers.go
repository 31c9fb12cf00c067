package activities

import (
	"context"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

const (
	// leftoversEvery is how often the cloud is asked for leftovers. Listing instance profiles is a request to IAM, which has
	// low limits for the whole account; Karpenter does it as rarely.
	leftoversEvery = 30 * time.Minute
	// leftoverAge is how long something has to be a leftover before it is removed: a launch that was prepared with it is
	// sent within half an hour, and a class may come back from a backup.
	leftoverAge = time.Hour
	// maxLeftovers limits how many leftovers one sweep removes, because EC2 and IAM allow few such calls.
	maxLeftovers = 20
)

// leftovers removes launch templates and instance profiles that nothing uses: those of node classes that were deleted while
// no worker ran, or whose finalizer somebody removed, those of former roles, and those of an earlier cluster of this name.
// It removes nothing while the sweep doubts what it sees.
func (s *sweep) leftovers(ctx context.Context) {
	if s.result.Stopped != "" {
		return
	}
	if s.idle.due(s.now) {
		found, err := s.cloud.Leftovers(ctx, s.mirror.NodeClasses())
		if err != nil {
			s.fail("leftovers", cloudFailure("list leftovers", err))
			return
		}
		s.idle.see(found, s.now)
	}
	for _, leftover := range s.idle.take(maxLeftovers, s.now) {
		if err := s.cloud.RemoveLeftover(ctx, leftover); err != nil {
			s.fail(leftover.String(), cloudFailure("remove", err))
			continue
		}
		s.result.Collected = append(s.result.Collected, leftover.String())
	}
}

// idle remembers since when each leftover has been one. It is this process's memory only: a new worker begins to count
// again.
type idle struct {
	mu    sync.Mutex
	asked time.Time
	since map[cloud.Leftover]time.Time
	// aged are those that may be removed, the first found first.
	aged []cloud.Leftover
}

// due reports whether it is time to ask the cloud.
func (i *idle) due(now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return now.Sub(i.asked) >= leftoversEvery
}

// see records an answer of the cloud. What is missing from it has come into use or is gone.
func (i *idle) see(found []cloud.Leftover, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.since
	i.asked, i.since, i.aged = now, make(map[cloud.Leftover]time.Time, len(found)), nil
	for _, leftover := range found {
		since, known := before[leftover]
		if !known {
			since = now
		}
		i.since[leftover] = since
		if now.Sub(since) >= leftoverAge {
			i.aged = append(i.aged, leftover)
		}
	}
}

// take returns some of the leftovers that may be removed, each once for every answer of the cloud, and none of an answer
// that is out of date.
func (i *idle) take(most int, now time.Time) []cloud.Leftover {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.Sub(i.asked) > leftoversEvery {
		return nil
	}
	taken := i.aged[:min(most, len(i.aged))]
	i.aged = i.aged[len(taken):]
	return taken
}
