package activities

import (
	"context"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// leftoversEvery is how often the cloud is asked for leftovers. Listing instance profiles is a request to IAM, which has
	// low limits for the whole account; Karpenter does it as rarely.
	leftoversEvery = 30 * time.Minute
	// leftoverAge is how long something has to be a leftover before it is removed: a launch that was prepared with it is
	// sent within half an hour, and a class may come back from a backup. If the cloud was not asked for so long, the time
	// begins again, because it may have been in use meanwhile.
	leftoverAge = time.Hour
	// maxLeftovers limits how many leftovers one sweep removes, because EC2 and IAM allow few such calls.
	maxLeftovers = 20
	// maxKnown limits how many leftovers are remembered, because every sweep's history holds them. The others have their turn
	// when these are gone.
	maxKnown = 500
)

// leftovers removes launch templates and instance profiles that nothing uses: those of node classes that were deleted while
// no worker ran, or whose finalizer somebody removed, those of former roles, and those of an earlier cluster of this name.
// It removes nothing while the sweep doubts what it sees. What it knows goes from one sweep to the next, whichever worker
// runs them; sweeps never overlap.
func (s *sweep) leftovers(ctx context.Context, known *workflows.Leftovers) {
	s.result.Leftovers = known
	if s.result.Stopped != "" {
		return
	}
	var idle workflows.Leftovers
	if known != nil {
		idle = workflows.Leftovers{Asked: known.Asked, Known: slices.Clone(known.Known)}
	}
	if s.now.Sub(idle.Asked) >= leftoversEvery {
		found, err := s.cloud.Leftovers(ctx, s.mirror.NodeClasses())
		if err != nil {
			s.fail("leftovers", cloudFailure("list leftovers", err))
			return
		}
		idle = after(idle, found, s.now)
	}
	for _, leftover := range aged(&idle, s.now) {
		if err := s.cloud.RemoveLeftover(ctx, leftover); err != nil {
			s.fail(leftover.String(), cloudFailure("remove", err))
			continue
		}
		s.result.Collected = append(s.result.Collected, leftover.String())
	}
	s.result.Leftovers = &idle
}

// after returns what is known after an answer of the cloud. What is missing from it has come into use or is gone.
func after(before workflows.Leftovers, found []cloud.Leftover, now time.Time) workflows.Leftovers {
	since := make(map[cloud.Leftover]time.Time, len(before.Known))
	for _, k := range before.Known {
		if now.Sub(before.Asked) > leftoverAge {
			break
		}
		since[cloud.Leftover{Kind: k.Kind, Name: k.Name}] = k.Since
	}
	known := workflows.Leftovers{Asked: now}
	for _, leftover := range found {
		first, again := since[leftover]
		if !again {
			first = now
		}
		known.Known = append(known.Known, workflows.KnownLeftover{Kind: leftover.Kind, Name: leftover.Name, Since: first})
	}
	slices.SortStableFunc(known.Known, func(a, b workflows.KnownLeftover) int { return a.Since.Compare(b.Since) })
	known.Known = known.Known[:min(maxKnown, len(known.Known))]
	return known
}

// aged returns some of the leftovers that may be removed, each once for every answer of the cloud.
func aged(idle *workflows.Leftovers, now time.Time) []cloud.Leftover {
	var taken []cloud.Leftover
	for i := range idle.Known {
		k := &idle.Known[i]
		if len(taken) < maxLeftovers && !k.Tried && now.Sub(k.Since) >= leftoverAge {
			k.Tried = true
			taken = append(taken, cloud.Leftover{Kind: k.Kind, Name: k.Name})
		}
	}
	return taken
}
