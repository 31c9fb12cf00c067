package workflows

import "time"

// Every side effect, its timeouts and its retries, in one place. The reasons:
//
//   - Attempt bounds one try, so it is as short as the slowest honest try: a fleet call takes seconds, but EC2 may keep
//     it waiting in a throttled queue, so a minute.
//   - Total is set only where somebody has to decide differently afterwards. Whatever must happen in the end (terminate,
//     take a finalizer off) has none: giving up would leak.
//   - Activities that wait for the world have a Heartbeat. A worker that is killed is noticed after that long, and a
//     cancellation reaches the activity with the next heartbeat.
//   - Pauses double from First to Most. Activities that know better (EC2 said when to come back, a budget is blocked)
//     ask for their own next delay.
var (
	// EvictActivity cordons a node and evicts its pods until none is left. It returns when the node is drained, when
	// what blocks the drain has changed, so that the workflow can show it, and at the latest after half an hour.
	EvictActivity = Activity[EvictInput, EvictResult]{"Evict", Policy{Attempt: 35 * time.Minute, Heartbeat: 15 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}
	// UncordonActivity takes back what EvictActivity did to the node itself, after a drain was cancelled.
	UncordonActivity = Activity[UncordonInput, struct{}]{"Uncordon", Policy{Attempt: 30 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}
	// DeleteClaimActivity deletes the NodeClaim, recording why; the NodeClaim workflow hears of it from the starter.
	DeleteClaimActivity = Activity[DeleteClaimInput, struct{}]{"DeleteClaim", Policy{Attempt: 30 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}
)
