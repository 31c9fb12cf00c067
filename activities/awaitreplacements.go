package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/workflows"
)

// waiter waits for what a replacement needs before it goes on.
type waiter struct {
	objects objects
	mirror  Mirror
	seen    seen
	events  recorder
}

// AwaitReplacements watches the mirror until all claims of a replacement are initialized, one of them is gone, or the time
// is up.
func (w *waiter) AwaitReplacements(ctx context.Context, in workflows.AwaitReplacementsInput) (workflows.Awaited, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	// A claim that this mirror has not seen yet would look like one that is gone.
	if _, err := w.seen.awaitClaims(ctx, in.SeenVersion, ""); err != nil {
		return workflows.Awaited{}, fmt.Errorf("wait for the claims of replacement %s: %w", in.ID, err)
	}
	w.tellWaiting(ctx, in.Claims)
	waiting, stop := context.WithDeadline(ctx, in.Until)
	defer stop()
	var on []cluster.Event
	for _, ref := range in.Claims {
		on = append(on, cluster.Event{Kind: cluster.ClaimChanged, Name: ref.Name})
	}
	var found workflows.Awaited
	err := w.mirror.Await(waiting, func() (bool, error) {
		found = w.awaited(in.Claims)
		return len(found.Lost) > 0 || len(found.Late) == 0, nil
	}, on...)
	switch {
	case err == nil:
		if len(found.Lost) > 0 {
			found.Late = nil
		}
		return found, nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return found, nil
	}
	return workflows.Awaited{}, fmt.Errorf("wait for replacement %s: %w", in.ID, err)
}

// tellWaiting emits Karpenter's Event on the claims that a replacement waits for, once.
func (w *waiter) tellWaiting(ctx context.Context, refs []workflows.ClaimRef) {
	if activity.GetInfo(ctx).Attempt > 1 {
		return
	}
	for _, ref := range refs {
		if claim := w.mirror.Claim(ref.Name); claim != nil && string(claim.UID) == ref.UID && !claim.IsTrue(karpv1.ConditionTypeInitialized) {
			w.events.tellBoth(nil, claim, corev1.EventTypeNormal, eventWaitingReadiness, "Waiting on readiness to continue disruption")
		}
	}
}

// awaited reports which claims are lost and which are not initialized yet.
func (w *waiter) awaited(refs []workflows.ClaimRef) workflows.Awaited {
	var found workflows.Awaited
	for _, ref := range refs {
		switch claim := w.mirror.Claim(ref.Name); {
		case claim == nil || string(claim.UID) != ref.UID || !claim.DeletionTimestamp.IsZero():
			found.Lost = append(found.Lost, ref.Name)
		case !claim.IsTrue(karpv1.ConditionTypeInitialized):
			found.Late = append(found.Late, ref.Name+" "+lacks(claim))
		}
	}
	return found
}

// lacks describes the first condition that a claim still lacks before it is initialized.
func lacks(claim *karpv1.NodeClaim) string {
	for _, stage := range []struct{ condition, what string }{
		{karpv1.ConditionTypeLaunched, "is not launched"},
		{karpv1.ConditionTypeRegistered, "has not registered"},
		{karpv1.ConditionTypeInitialized, "is not initialized"},
	} {
		if claim.IsTrue(stage.condition) {
			continue
		}
		if condition := claim.Condition(stage.condition); condition != nil && condition.Message != "" {
			return stage.what + " (" + condition.Message + ")"
		}
		return stage.what
	}
	return ""
}
