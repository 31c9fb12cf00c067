package activities

import (
	"sync"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// answerFor is how long an answer about one and the same state of the cluster is good for. Time passes in it too.
const answerFor = time.Second

// disruptions remembers the planner's last answer. The starter asks, finds that there is something to do and wakes
// Disruption, whose activity asks the same a moment later, most often in the same process.
//
// It remembers also what the answer was made of, so that what has not changed since need not be asked again. That takes
// about 15 MiB for 5,000 nodes with 50,000 pods, beside the last snapshot, and lasts as long as there are nodes.
type disruptions struct {
	mu     sync.Mutex
	memory plan.Memory
	// list is the first place of the snapshot's list of nodes, which the mirror makes anew when anything changes.
	list  **plan.Node
	at    time.Time
	found plan.Disruption
}

// answer asks the planner, unless it has just answered the same. What the snapshot does not show is asked about anew: what
// is held, and what is settling, are judged each time, and where they change what can be bought the planner starts afresh.
func (d *disruptions) answer(in plan.Input) plan.Disruption {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(in.Snapshot.Nodes) == 0 {
		d.list, d.found, d.memory = nil, plan.Disruption{}, plan.Memory{}
		return plan.Disrupt(in)
	}
	if len(in.Unavailable)+len(in.Held)+len(in.Settling) > 0 {
		return d.memory.Disrupt(in)
	}
	list, age := &in.Snapshot.Nodes[0], in.Snapshot.Time.Sub(d.at)
	if list != d.list || age < 0 || age > answerFor {
		d.list, d.at, d.found = list, in.Snapshot.Time, d.memory.Disrupt(in)
	}
	return d.found
}
