package starter

import (
	"context"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// repairEvery is the minimum interval between looks at the conditions of nodes.
	repairEvery = 2 * time.Second
	// reasonRepairPaused is what told remembers of a node that is not repaired because disruption is paused.
	reasonRepairPaused = "NodeRepairPaused"
	// reasonRepairBlocked says that an unhealthy node is not repaired, because too many nodes are unhealthy or disruption is
	// paused. The reason is Karpenter's.
	reasonRepairBlocked = "NodeRepairBlocked"
)

// repairs terminates nodes that will not recover.
type repairs struct {
	mirror    Mirror
	workflows *signaller
	// policies say which nodes will not recover.
	policies []cloud.RepairPolicy
	// counted is told of each node that is terminated; nil if nobody is.
	counted func(claim *karpv1.NodeClaim, condition corev1.NodeConditionType)
	events  record.EventRecorder
	// told are the claims whose nodes were terminated, or kept because repair is blocked.
	told dedup
	log  *zap.Logger
}

// watch terminates nodes that will not recover. Whether there are any follows from the conditions of all nodes, so it
// looks after each change of one, and when the next will have been unhealthy for too long.
func (r *repairs) watch(ctx context.Context) error {
	events := r.mirror.Subscribe(cluster.NodeChanged, cluster.ClaimChanged, cluster.PausesChanged)
	defer events.Close()
	for {
		events.Take()
		wait := r.repair(ctx, time.Now())
		if err := smithytime.SleepWithContext(ctx, repairEvery); err != nil {
			return err
		}
		awaitEvents(ctx, events, wait)
	}
}

// repair terminates the nodes that are due now and returns when to look again; zero means only after a change.
func (r *repairs) repair(ctx context.Context, now time.Time) time.Duration {
	if err := r.mirror.Fresh(freshEnough); err != nil {
		return staleAgain
	}
	var machines []plan.Machine
	for _, node := range r.mirror.Nodes() {
		machines = append(machines, plan.Machine{Node: node, Claim: r.mirror.ClaimOfNode(node.Name)})
	}
	found := plan.FindRepairs(machines, r.policies, now)
	for _, repair := range found.Blocked {
		if r.told.markNew(repair.Claim.UID, reasonRepairBlocked) {
			r.log.Warn("node is not repaired", zap.String("node", repair.Node.Name), zap.String("claim", repair.Claim.Name), zap.String("why", repair.Message))
			r.event(repair.Node, reasonRepairBlocked, repair.Message)
		}
	}
	var wait time.Duration
	if !found.NextLook.IsZero() {
		wait = max(found.NextLook.Sub(now), repairEvery)
	}
	for _, repair := range found.Due {
		if stop := closed(r.mirror, karpv1.PauseDisruption, karpv1.WindowUnhealthy, repair.Claim.Labels[karpv1.NodePoolLabelKey], now); stop != nil {
			if r.told.markNew(repair.Claim.UID, reasonRepairPaused) {
				r.event(repair.Node, reasonRepairBlocked, repair.Message+", and is not repaired: "+stop.String())
			}
			continue
		}
		if !r.told.markNew(repair.Claim.UID, workflows.ReasonUnhealthy) {
			continue
		}
		r.log.Warn("node is repaired", zap.String("node", repair.Node.Name), zap.String("claim", repair.Claim.Name), zap.String("why", repair.Message))
		if err := r.workflows.end(ctx, repair.Claim, workflows.Ending{Reason: workflows.ReasonUnhealthy, Deadline: now, Forced: true}); err != nil {
			r.told.forget(repair.Claim.UID)
			r.log.Warn("could not end an unhealthy node", zap.String("claim", repair.Claim.Name), zap.Error(err))
			wait = endAgain
			continue
		}
		if r.counted != nil {
			r.counted(repair.Claim, repair.Condition.Type)
		}
		r.event(repair.Node, workflows.ReasonUnhealthy, repair.Message)
	}
	return wait
}

// event records an Event on a Node.
func (r *repairs) event(node *corev1.Node, reason, message string) {
	if r.events != nil {
		r.events.Event(node, corev1.EventTypeWarning, reason, message)
	}
}
