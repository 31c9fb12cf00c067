package starter

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// repairEvery spaces the looks at the nodes' conditions while they change.
	repairEvery = 2 * time.Second
	// reasonRepairBlocked is the reason of the Event on a node that is not repaired because too many are ill; it is
	// Karpenter's.
	reasonRepairBlocked = "NodeRepairBlocked"
)

// watchRepair ends nodes that will not recover. Whether there are any follows from the conditions of all nodes, so it is
// asked after each change of one, and when the next will have been ill for too long.
func (s *Starter) watchRepair(ctx context.Context) error {
	events := s.Mirror.Subscribe(cluster.NodeChanged, cluster.ClaimChanged)
	defer events.Close()
	for {
		events.Take()
		wait := s.repair(ctx, time.Now())
		if err := sleep(ctx, repairEvery); err != nil {
			return err
		}
		awaitEvents(ctx, events, wait)
	}
}

// repair ends the nodes that are to be ended now and returns when to look again; zero means only after a change.
func (s *Starter) repair(ctx context.Context, now time.Time) time.Duration {
	if err := s.Mirror.Fresh(freshEnough); err != nil {
		return evaluateEvery
	}
	var machines []plan.Machine
	for _, node := range s.Mirror.Nodes() {
		machines = append(machines, plan.Machine{Node: node, Claim: s.Mirror.ClaimOfNode(node.Name)})
	}
	found := plan.FindRepairs(machines, s.RepairPolicies, now)
	for _, repair := range found.Blocked {
		if s.repairs.first(repair.Claim.UID, reasonRepairBlocked) {
			s.Log.Warn("node is not repaired", zap.String("node", repair.Node.Name), zap.String("claim", repair.Claim.Name), zap.String("why", repair.Message))
			s.event(repair.Node, reasonRepairBlocked, repair.Message)
		}
	}
	var wait time.Duration
	if !found.NextLook.IsZero() {
		wait = max(found.NextLook.Sub(now), repairEvery)
	}
	for _, repair := range found.Due {
		if !s.repairs.first(repair.Claim.UID, workflows.ReasonUnhealthy) {
			continue
		}
		s.Log.Warn("node is repaired", zap.String("node", repair.Node.Name), zap.String("claim", repair.Claim.Name), zap.String("why", repair.Message))
		if err := s.end(ctx, repair.Claim, workflows.Ending{Reason: workflows.ReasonUnhealthy, Deadline: now, Forced: true}); err != nil {
			s.repairs.drop(repair.Claim.UID)
			s.Log.Warn("could not end an unhealthy node", zap.String("claim", repair.Claim.Name), zap.Error(err))
			wait = statusRetry
			continue
		}
		s.event(repair.Node, workflows.ReasonUnhealthy, repair.Message)
	}
	return wait
}

// event records an Event on a Node.
func (s *Starter) event(node *corev1.Node, reason, message string) {
	if s.Events != nil {
		s.Events.Event(node, corev1.EventTypeWarning, reason, message)
	}
}
