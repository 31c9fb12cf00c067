package activities

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

const (
	// placesEvery is how often it is looked for places for the pods of nodes that go with notice. Pods that have one are
	// evicted at once, and those of other nodes must not be sent to the same.
	placesEvery = time.Second
	// lastMoment is how long before the end of its instance a pod is evicted at the latest, its grace period aside: the
	// eviction takes a moment, and its budget may refuse it at first.
	lastMoment = 15 * time.Second
	// waitsUnannounced is how long after the end of its claim a pod waits for a place where nobody has said when its
	// instance ends: as long as two launches may take.
	waitsUnannounced = 10 * time.Minute
)

// places remembers, for all drains of a process, which pods have one.
type places struct {
	mirror      Mirror
	preferences plan.PreferencePolicy

	mu    sync.Mutex
	at    time.Time
	found map[types.UID]bool
}

// elsewhere says for which pods of nodes that go, by UID, another node that serves has room beside all that waits or is on
// its way there, and when the instance of a claim ends by what is known now. Where the cluster is not seen well enough, no
// pod has room.
func (p *places) elsewhere(claim string) (placed map[types.UID]bool, ends time.Time) {
	if noted := p.mirror.Claim(claim); noted != nil {
		ends = noted.EndsAt()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= placesEvery {
		p.found = nil
		if p.mirror.Fresh(freshEnough) == nil {
			p.found = plan.Placed(p.mirror.Snapshot(), p.preferences)
		}
		p.at = time.Now()
	}
	return p.found, ends
}
