package activities

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

const (
	// placesEvery is the interval at which places are sought for the pods of nodes that end with notice. Pods that have one
	// are evicted at once, and pods of other nodes must not be sent to the same place.
	placesEvery = time.Second
	// lastMoment is how long before the end of its instance a pod is evicted at the latest, not counting its grace period:
	// the eviction takes a moment, and its budget may refuse it at first.
	lastMoment = 15 * time.Second
	// waitsUnannounced is how long after the deletion of its claim a pod waits for a place if it is not known when its
	// instance ends: as long as two launches may take.
	waitsUnannounced = 10 * time.Minute
)

// places remembers, for all drains of a process, which pods have a place.
type places struct {
	mirror      Mirror
	preferences plan.PreferencePolicy

	mu    sync.Mutex
	at    time.Time
	found map[types.UID]bool
}

// elsewhere returns, by UID, the pods of nodes that are going away for which another serving node has room besides
// everything that is pending or on its way there. It also returns when the instance of a claim ends, as far as is known. If
// the mirror is not fresh, no pod has room.
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
