package starter

import (
	"context"
	"fmt"
	"maps"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

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

// overdue tells people of machines that do not come, and has an offering left alone of which two do not.
type overdue struct {
	mirror    Mirror
	offerings *offerings
	events    record.EventRecorder
	log       *zap.Logger
	// told are the claims whose machines people know not to come, last is when the last one of each offering did not.
	told map[types.UID]bool
	last map[cloud.OfferingKey]time.Time
}

// again notes that a machine does not come, and says whether another one of its offering did not come shortly before.
func (o *overdue) again(key cloud.OfferingKey, now time.Time) bool {
	last, some := o.last[key]
	o.last[key] = now
	return some && now.Sub(last) < overdueAgain
}

// watch tells people of machines that were launched and serve later than is usual in their NodePool, and has an
// offering left alone for a while where that happens again. Their pods are planned for elsewhere, because the mirror shows
// no room and no promises there; the claims end when they have not registered in time.
func (o *overdue) watch(ctx context.Context) error {
	for {
		o.tell(ctx, time.Now())
		if err := smithytime.SleepWithContext(ctx, overdueEvery); err != nil {
			return err
		}
	}
}

// tell tells people of the machines that are overdue now, each once.
func (o *overdue) tell(ctx context.Context, now time.Time) {
	late := map[types.UID]bool{}
	for _, claim := range o.mirror.Overdue() {
		late[claim.UID] = true
		if o.told[claim.UID] {
			continue
		}
		o.told[claim.UID] = true
		key := offeringOf(claim)
		o.log.Warn("a machine is overdue; its pods are planned for elsewhere", zap.String("claim", claim.Name), zap.Any("offering", key))
		if o.events != nil {
			o.events.Event(claim, corev1.EventTypeWarning, eventOverdue,
				fmt.Sprintf("The instance was launched %s ago and its node is not ready yet, which is longer than usual in this NodePool. Its pods are planned for elsewhere.", launchedFor(claim, now)))
		}
		if o.again(key, now) {
			o.offerings.shun(ctx, []cloud.OfferingKey{key})
		}
	}
	maps.DeleteFunc(o.told, func(uid types.UID, _ bool) bool { return !late[uid] })
}

// launchedFor is how long ago a claim's instance was launched.
func launchedFor(claim *karpv1.NodeClaim, now time.Time) time.Duration {
	return now.Sub(claim.Condition(karpv1.ConditionTypeLaunched).LastTransitionTime.Time).Round(time.Second)
}
