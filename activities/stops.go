package activities

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// stops says what people have paused. The planner knows it from the mirror; this asks the API server at the moment of
// acting, because a pause may have begun since the decision, and days may have passed while no worker ran.
type stops struct {
	objects objects
	// windows are the cluster's maintenance windows.
	windows karpv1.MaintenanceWindows
}

// of says what stops a kind of work for each of some NodePools; pools that nothing stops are not in the result. A NodePool
// that is gone, or an empty name, is stopped by what is paused in the whole cluster only.
func (s stops) of(ctx context.Context, scope karpv1.PauseScope, pools ...string) (map[string]*karpv1.Stop, error) {
	return s.each(ctx, func(everywhere []karpv1.Pause, pool *karpv1.NodePool) *karpv1.Stop {
		return karpv1.StopOf(scope, everywhere, pool, time.Now())
	}, pools...)
}

// ofRemovals says what stops the removal of nodes for a reason, for each of some NodePools: a pause of what the reason belongs
// to, or that no maintenance window is open for it.
func (s stops) ofRemovals(ctx context.Context, scope karpv1.PauseScope, reason string, pools ...string) (map[string]*karpv1.Stop, error) {
	return s.each(ctx, func(everywhere []karpv1.Pause, pool *karpv1.NodePool) *karpv1.Stop {
		if stop := karpv1.StopOf(scope, everywhere, pool, time.Now()); stop != nil {
			return stop
		}
		return s.windows.Stop(windowReason(reason), pool, time.Now())
	}, pools...)
}

// windowReason returns the reason for which maintenance windows are asked about a removal.
func windowReason(reason string) karpv1.DisruptionReason {
	if scopeOf(reason) == karpv1.PauseInterruption {
		return karpv1.WindowInterrupted
	}
	return karpv1.DisruptionReason(reason)
}

// each asks about each of some NodePools once.
func (s stops) each(ctx context.Context, ask func(everywhere []karpv1.Pause, pool *karpv1.NodePool) *karpv1.Stop, pools ...string) (map[string]*karpv1.Stop, error) {
	everywhere, err := s.everywhere(ctx)
	if err != nil {
		return nil, err
	}
	asked, found := map[string]bool{}, map[string]*karpv1.Stop{}
	for _, name := range pools {
		if asked[name] {
			continue
		}
		asked[name] = true
		pool, err := s.pool(ctx, name)
		if err != nil {
			return nil, err
		}
		if stop := ask(everywhere, pool); stop != nil {
			found[name] = stop
		}
	}
	return found, nil
}

// rollouts says, by NodePool, why no node may go for a reason because its rollout is stopped.
func (s stops) rollouts(ctx context.Context, reason string, pools ...string) (map[string]string, error) {
	found := map[string]string{}
	if reason != string(karpv1.DisruptionReasonDrifted) {
		return found, nil
	}
	asked := map[string]bool{}
	for _, name := range pools {
		if asked[name] {
			continue
		}
		asked[name] = true
		pool, err := s.pool(ctx, name)
		if err != nil {
			return nil, err
		}
		if pool == nil {
			continue
		}
		if why := pool.RolloutStop(); why != "" {
			found[name] = why
		}
	}
	return found, nil
}

// everywhere reads what is paused in the whole cluster.
func (s stops) everywhere(ctx context.Context) ([]karpv1.Pause, error) {
	var list corev1.ConfigMap
	err := s.objects.Get(ctx, client.ObjectKey{Namespace: karpv1.PauseNamespace, Name: karpv1.PauseConfigMapName}, &list)
	if err != nil {
		return nil, ignoreNotFound("read what is paused", err)
	}
	return karpv1.ReadPauses(list.Data[karpv1.PauseConfigMapKey]), nil
}

// pool reads a NodePool; nil where there is none.
func (s stops) pool(ctx context.Context, name string) (*karpv1.NodePool, error) {
	if name == "" {
		return nil, nil
	}
	var pool karpv1.NodePool
	switch err := s.objects.Get(ctx, client.ObjectKey{Name: name}, &pool); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read NodePool %s: %w", name, err)
	}
	return &pool, nil
}

// scopeOf returns what has to be paused for a claim not to end for a reason; empty if no pause keeps it. What a person
// wants, and what only clears away what is gone already, is never paused.
func scopeOf(reason string) karpv1.PauseScope {
	switch reason {
	case workflows.ReasonExpired, workflows.ReasonUnhealthy, workflows.ReasonHookFailed:
		return karpv1.PauseDisruption
	case workflows.ReasonSpotInterrupted, workflows.ReasonReservationInterrupted, workflows.ReasonCapacityBlockEnding, workflows.ReasonRebalanceRecommended,
		workflows.ReasonScheduledChange, workflows.ReasonInstanceStopping, workflows.ReasonInstanceTerminated, workflows.ReasonInstanceStatusImpaired,
		workflows.ReasonSystemStatusImpaired:
		return karpv1.PauseInterruption
	}
	return ""
}

// poolsOf returns the NodePools of nodes.
func poolsOf(nodes []workflows.RemovedNode) []string {
	pools := make([]string, 0, len(nodes))
	for i := range nodes {
		pools = append(pools, nodes[i].NodePool)
	}
	return pools
}
