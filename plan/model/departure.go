package model

import (
	"time"
)

// bootsIn is how long before its end a pod gets another place that does not want to be moved: as long as EC2 leaves a
// spot instance after its notice, and twice what a machine takes to serve. Sooner, the place would only be paid for.
const bootsIn = 2 * time.Minute

// MovesAt says from when on a pod of a node that leaves has to have another place, and whether it ever has to. A drain
// evicts most pods at once. It waits for a pod that asks not to be disrupted, and so does its new place: until that wish
// ends, or until the pod is lost with its node, which ends at the given time, zero for never. A time that has passed
// stands for now.
func (p *Pod) MovesAt(ends, now time.Time) (at time.Time, moves bool) {
	switch {
	case !p.Reschedulable():
		return time.Time{}, false
	case !p.Undisruptable(now):
		return now, true
	}
	at = p.DisruptableAt()
	if lost := ends.Add(-p.GracePeriod - bootsIn); !ends.IsZero() && (at.IsZero() || lost.Before(at)) {
		at = lost
	}
	return at, !at.IsZero()
}
