package activities

import (
	"sync"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// answerFor is how long an answer about the same state of the cluster is valid. The answer depends on the time, too.
const answerFor = time.Second

// disruptions remembers the planner's last answer. The starter asks, finds that there is something to do and wakes
// Disruption, whose activity asks the same a moment later, most often in the same process.
type disruptions struct {
	mu sync.Mutex
	// list points to the first element of the snapshot's list of nodes, which the mirror rebuilds when anything changes.
	list  **plan.Node
	at    time.Time
	found plan.Disruption
}

// answer asks the planner, unless it has just answered the same question. It does not cache answers that depend on more
// than the snapshot: refused offerings, held nodes, settling pools and what rates count.
func (d *disruptions) answer(in plan.Input) plan.Disruption {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(in.Snapshot.Nodes) == 0 {
		d.list, d.found = nil, plan.Disruption{}
		return plan.Disrupt(in)
	}
	if len(in.Unavailable)+len(in.Held)+len(in.Settling)+len(in.Begun) > 0 {
		return plan.Disrupt(in)
	}
	list, age := &in.Snapshot.Nodes[0], in.Snapshot.Time.Sub(d.at)
	if list != d.list || age < 0 || age > answerFor {
		d.list, d.at, d.found = list, in.Snapshot.Time, plan.Disrupt(in)
	}
	return d.found
}
