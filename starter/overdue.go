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
	// overdueEvery is the interval between looks for overdue machines.
	overdueEvery = 5 * time.Second
	// overdueAgain is the time within which a second overdue machine of one offering is taken to be no accident.
	overdueAgain = 30 * time.Minute
	// eventOverdue says that a machine takes longer to serve than is usual in its NodePool: its pods are planned for
	// elsewhere.
	eventOverdue = "Overdue"
)

// overdue records Events about overdue machines, and shuns an offering of which two are overdue.
type overdue struct {
	mirror    Mirror
	offerings *offerings
	events    record.EventRecorder
	log       *zap.Logger
	// told are the claims that Events were recorded for; last is when a machine of each offering was last found to be
	// overdue.
	told map[types.UID]bool
	last map[cloud.OfferingKey]time.Time
}

// again records an overdue machine, and says whether another one of its offering was overdue shortly before.
func (o *overdue) again(key cloud.OfferingKey, now time.Time) bool {
	last, some := o.last[key]
	o.last[key] = now
	return some && now.Sub(last) < overdueAgain
}

// watch records Events about machines whose nodes take longer to serve than is usual in their NodePool, and shuns an
// offering for a while if that happens again. Their pods are planned for elsewhere, because the mirror shows no room
// and no promises there; their claims end if they do not register in time.
func (o *overdue) watch(ctx context.Context) error {
	for {
		o.tell(ctx, time.Now())
		if err := smithytime.SleepWithContext(ctx, overdueEvery); err != nil {
			return err
		}
	}
}

// tell records one Event for each machine that is overdue now.
func (o *overdue) tell(ctx context.Context, now time.Time) {
	late := map[types.UID]bool{}
	for _, claim := range o.mirror.Overdue() {
		late[claim.UID] = true
		if o.told[claim.UID] {
			continue
		}
		o.told[claim.UID] = true
		key := o.offerings.of(claim)
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

// launchedFor returns how long ago a claim's instance was launched.
func launchedFor(claim *karpv1.NodeClaim, now time.Time) time.Duration {
	return now.Sub(claim.Condition(karpv1.ConditionTypeLaunched).LastTransitionTime.Time).Round(time.Second)
}
