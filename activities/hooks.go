package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/hook"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// hookAgain is when a hook is tried again that keeps a node from being drained.
	hookAgain = time.Minute
	// hooksEnd is how long before its deadline a drain waits for no hook any more: the pods need the rest.
	hooksEnd = 15 * time.Second
	// causeHook is the cause of a Blocker that is a hook.
	causeHook = "Hook"
)

// HookRunner runs one hook, until it succeeds or fails for good.
type HookRunner interface {
	Run(ctx context.Context, h karpv1.Hook, about hook.About) error
}

// hasHooks says whether a NodePool has hooks at a point, or an annotation that cannot be read.
func hasHooks(pool *karpv1.NodePool, point karpv1.HookPoint) bool {
	if pool == nil || pool.Annotations[karpv1.HooksAnnotationKey] == "" {
		return false
	}
	hooks, err := pool.HooksAt(point)
	return err != nil || len(hooks) > 0
}

// hooker runs the hooks of NodePools.
type hooker struct {
	cluster workflows.Cluster
	objects objects
	runner  HookRunner
	events  recorder
	log     *zap.Logger
}

// Hooks runs those hooks of a NodePool that are not done yet, in their order, until one has failed that matters. It reads the
// NodePool each time, so that a hook which was corrected, or taken away, stops nothing any more.
func (h *hooker) Hooks(ctx context.Context, in workflows.HookInput) (workflows.HookResult, error) {
	ctx, beating := heartbeat(ctx)
	defer beating()
	result := workflows.HookResult{Done: in.Done}
	pool, err := stops{objects: h.objects}.pool(ctx, in.NodePool)
	if err != nil {
		return result, err
	}
	node, err := h.objects.node(ctx, in.Node, in.NodeUID)
	if err != nil {
		return result, err
	}
	if pool == nil || node == nil {
		result.Finished = true
		return result, nil
	}
	hooks, err := pool.HooksAt(karpv1.HookPoint(in.When))
	if err != nil {
		return h.blocked(result, node, in, workflows.Blocker{Cause: causeHook, By: karpv1.HooksAnnotationKey, Message: err.Error()}), nil
	}
	for _, next := range hooks {
		if slices.Contains(result.Done, next.Name) {
			continue
		}
		if !in.Deadline.IsZero() && time.Until(in.Deadline) < hooksEnd {
			h.tell(node, in, corev1.EventTypeWarning, eventHookSkipped, fmt.Sprintf("Hook %s: the deadline of the drain has come", next.Name))
			break
		}
		switch err := h.run(ctx, next, node, in); {
		case ctx.Err() != nil:
			if cause := context.Cause(ctx); !temporal.IsCanceledError(cause) {
				return result, fmt.Errorf("run hook %s: %w", next.Name, cause)
			}
			return result, nil // the workflow has other plans, and asks again if it has to
		case err == nil:
			h.tell(node, in, corev1.EventTypeNormal, eventHookSucceeded, fmt.Sprintf("Hook %s has run (%s)", next.Name, in.When))
		case !next.Fails():
			h.tell(node, in, corev1.EventTypeWarning, eventHookFailed, fmt.Sprintf("Hook %s has failed, which its failurePolicy ignores: %v", next.Name, err))
		case in.When == workflows.AfterReady:
			h.tell(node, in, corev1.EventTypeWarning, eventHookFailed, fmt.Sprintf("Hook %s has failed, so the node is removed: %v", next.Name, err))
			result.Failed = next.Name
			return result, nil
		default:
			return h.blocked(result, node, in, workflows.Blocker{Cause: causeHook, By: next.Name, Message: err.Error()}), nil
		}
		result.Done = append(slices.Clip(result.Done), next.Name)
	}
	result.Finished = true
	return result, nil
}

// run runs one hook, within the deadline of the drain.
func (h *hooker) run(ctx context.Context, next karpv1.Hook, node *corev1.Node, in workflows.HookInput) error {
	if !in.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, in.Deadline.Add(-hooksEnd), fmt.Errorf("the deadline of the drain is %s", in.Deadline.UTC().Format(time.RFC3339)))
		defer cancel()
	}
	began := time.Now()
	err := h.runner.Run(ctx, next, hook.About{Cluster: string(h.cluster), Node: in.Node, NodeUID: in.NodeUID, Claim: in.Claim, NodePool: in.NodePool,
		ProviderID: node.Spec.ProviderID, Reason: in.Reason, Deadline: in.Deadline})
	logs.Of(ctx, h.log).Info("ran hook", zap.String("hook", next.Name), zap.String("when", in.When), zap.String("node", in.Node), zap.String("pool", in.NodePool),
		zap.Duration("took", time.Since(began)), zap.Error(err))
	return err
}

// blocked says what keeps a node from being drained. For a node that has come up nothing is kept: it is told, and serves.
func (h *hooker) blocked(result workflows.HookResult, node *corev1.Node, in workflows.HookInput, by workflows.Blocker) workflows.HookResult {
	if in.When == workflows.AfterReady {
		h.tell(node, in, corev1.EventTypeWarning, eventHookFailed, by.Message)
		result.Finished = true
		return result
	}
	result.Blockers, result.Again, result.Digest = []workflows.Blocker{by}, time.Now().Add(hookAgain), strings.Join([]string{by.Cause, by.By, by.Message}, " ")
	if result.Digest != in.Known {
		h.tell(node, in, corev1.EventTypeWarning, eventHookFailed, fmt.Sprintf("%s keeps the node from being drained: %s", by.By, by.Message))
	}
	return result
}

// tell emits an Event on the Node and on its claim.
func (h *hooker) tell(node *corev1.Node, in workflows.HookInput, eventType, reason, message string) {
	h.events.tell(node, eventType, reason, message)
	h.events.tell(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodeClaim", Name: in.Claim}, eventType, reason, message)
}
