package starter

import (
	"context"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

const (
	// overdueEvery is how often it is looked for machines that do not come.
	overdueEvery = 5 * time.Second
	// overdueAgain is within how long two machines of one offering that do not come are no accident.
	overdueAgain = 30 * time.Minute
	// eventOverdue is the reason of the Event by which people learn of such a machine.
	eventOverdue = "Overdue"
)

// overdueMachines are the claims whose machines people know not to come, and when the last one of each offering did not.
type overdueMachines struct {
	told map[types.UID]bool
	last map[cloud.OfferingKey]time.Time
}

func newOverdueMachines() overdueMachines {
	return overdueMachines{told: map[types.UID]bool{}, last: map[cloud.OfferingKey]time.Time{}}
}

// again notes that a machine does not come, and says whether another one of its offering did not come shortly before.
func (o overdueMachines) again(key cloud.OfferingKey, now time.Time) bool {
	last, some := o.last[key]
	o.last[key] = now
	return some && now.Sub(last) < overdueAgain
}

// watchOverdue tells people of machines that were launched and serve later than is usual in their NodePool, and has an
// offering left alone for a while where that happens again. Their pods are planned for elsewhere, because the mirror shows
// no room and no promises there; the claims end when they have not registered in time.
func (s *Starter) watchOverdue(ctx context.Context) error {
	machines := newOverdueMachines()
	for {
		s.tellOverdue(ctx, machines, time.Now())
		if err := sleep(ctx, overdueEvery); err != nil {
			return err
		}
	}
}

func (s *Starter) tellOverdue(ctx context.Context, machines overdueMachines, now time.Time) {
	overdue := map[types.UID]bool{}
	for _, claim := range s.Mirror.Overdue() {
		overdue[claim.UID] = true
		if machines.told[claim.UID] {
			continue
		}
		machines.told[claim.UID] = true
		key := offeringOf(claim)
		s.Log.Warn("a machine does not come; its pods are planned for elsewhere", zap.String("claim", claim.Name), zap.Any("offering", key))
		if s.Events != nil {
			s.Events.Event(claim, corev1.EventTypeWarning, eventOverdue,
				fmt.Sprintf("The instance was launched %s ago and its node does not serve yet, which takes less in this NodePool. Its pods are planned for elsewhere.", launchedFor(claim, now)))
		}
		if machines.again(key, now) {
			s.shun(ctx, []cloud.OfferingKey{key})
		}
	}
	maps.DeleteFunc(machines.told, func(uid types.UID, _ bool) bool { return !overdue[uid] })
}

// launchedFor is how long ago a claim's instance was launched.
func launchedFor(claim *karpv1.NodeClaim, now time.Time) time.Duration {
	return now.Sub(claim.Condition(karpv1.ConditionTypeLaunched).LastTransitionTime.Time).Round(time.Second)
}
