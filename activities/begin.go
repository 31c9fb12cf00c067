package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// replacer begins replacements: it creates the new claims, and marks the nodes to be replaced.
type replacer struct {
	objects   objects
	stops     stops
	mirror    Mirror
	catalogue *catalogue
	events    recorder
	counts    *Metrics
	log       *zap.Logger
}

// BeginReplacement creates the claims of a replacement and marks the nodes to be replaced. It creates the claims first:
// once a node is marked, its pods count as waiting for a place, and no other plan may buy one for them. A second attempt
// finds both by the replacement's id, and adds what the first has not done.
func (r *replacer) BeginReplacement(ctx context.Context, in workflows.ReplacementCommand) (workflows.BeginResult, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	if err := r.checkNotStopped(ctx, in); err != nil {
		return workflows.BeginResult{}, err
	}
	if !in.Independent {
		for _, gone := range in.Nodes {
			if _, _, err := r.candidate(ctx, in.ID, gone); err != nil {
				return workflows.BeginResult{}, err
			}
		}
	}
	if err := r.checkStillWorthwhile(ctx, in); err != nil {
		return workflows.BeginResult{}, err
	}
	result, err := r.createReplacements(ctx, in)
	if err != nil {
		return workflows.BeginResult{}, err
	}
	if err := r.markAll(ctx, in, in.Independent && activity.GetInfo(ctx).Attempt >= triesEach); err != nil {
		return workflows.BeginResult{}, err
	}
	logs.Of(ctx, r.log).Info("replacement begun", zap.String("replacement", in.ID), zap.String("reason", in.Reason), zap.Int("nodes", len(in.Nodes)),
		zap.Int("claims", len(in.Claims)), zap.Int("pods", in.Moves), zap.Float64("savesPerHour", in.SavesPerHour))
	return result, nil
}

// checkNotStopped ends a replacement if somebody has paused the disruption of its nodes, or the launch of what replaces
// them, or their maintenance window has closed, or the rollout that they are part of has stopped, or somebody wants to approve it
// first, since it was decided.
func (r *replacer) checkNotStopped(ctx context.Context, in workflows.ReplacementCommand) error {
	launched := make([]string, 0, len(in.Claims))
	for i := range in.Claims {
		launched = append(launched, in.Claims[i].NodePool)
	}
	removed := poolsOf(in.Nodes)
	if in.Reason == workflows.ReasonManualReplacement {
		removed = nil // what a person orders is never paused
	}
	halted, err := r.stops.rollouts(ctx, in.Reason, poolsOf(in.Nodes)...)
	if err != nil {
		return err
	}
	for _, why := range halted {
		return giveUp(workflows.FailureChanged, "%s", why)
	}
	for scope, pools := range map[karpv1.PauseScope][]string{karpv1.PauseDisruption: removed, karpv1.PauseProvisioning: launched} {
		stopped, err := r.stops.of(ctx, scope, pools...)
		if scope == karpv1.PauseDisruption {
			stopped, err = r.stops.ofRemovals(ctx, scope, in.Reason, pools...)
		}
		if err != nil {
			return err
		}
		for _, stop := range stopped {
			return giveUp(workflows.FailureChanged, "%s", stop)
		}
	}
	switch unapproved, err := r.stops.unapproved(ctx, in.Reason, in.Nodes...); {
	case err != nil:
		return err
	case unapproved != "":
		return giveUp(workflows.FailureChanged, "%s", unapproved)
	}
	return nil
}

// markAll marks the nodes. In an independent replacement it skips nodes that have changed and, with oneStays, nodes that
// the API server does not let it mark. It fails if no node is left.
func (r *replacer) markAll(ctx context.Context, in workflows.ReplacementCommand, oneStays bool) error {
	left := make([]error, len(in.Nodes))
	err := inParallel(ctx, len(in.Nodes), func(ctx context.Context, i int) error {
		claim, node, err := r.candidate(ctx, in.ID, in.Nodes[i])
		if err == nil {
			err = r.markReplaced(ctx, in, cmp.Or(in.Nodes[i].Why, in.Why, "being replaced"), claim, node)
		}
		var failure *temporal.ApplicationError
		switch changed := errors.As(err, &failure) && failure.Type() == workflows.FailureChanged; {
		case err == nil, !in.Independent, !changed && (!oneStays || ctx.Err() != nil):
			return err
		case !changed:
			logs.Of(ctx, r.log).Warn("a node cannot be marked, and is left out of its replacement", zap.String("replacement", in.ID), zap.String("node", in.Nodes[i].Node), zap.Error(err))
		}
		left[i] = err
		return nil
	})
	if err == nil && !slices.Contains(left, nil) {
		return left[0]
	}
	return err
}

// checkStillWorthwhile ends a replacement if most of the pods that it was to move have left since it was decided.
func (r *replacer) checkStillWorthwhile(ctx context.Context, in workflows.ReplacementCommand) error {
	if in.Moves == 0 {
		return nil
	}
	left := 0
	reduce := new(plan.Interner)
	for _, gone := range in.Nodes {
		pods, err := r.objects.podsOn(ctx, gone.Node)
		if err != nil {
			return err
		}
		for i := range pods {
			if reduce.Pod(&pods[i]).Reschedulable() {
				left++
			}
		}
	}
	if plan.Overtaken(in.Moves, left) {
		return giveUp(workflows.FailureChanged, "of %s that had to move, %d are left", counted(in.Moves, "pod", "pods"), left)
	}
	return nil
}

// candidate reads a node that is to be replaced, and its claim. It ends the replacement if either is gone or is being
// replaced or removed by somebody else, because the decision no longer holds.
func (r *replacer) candidate(ctx context.Context, id string, gone workflows.RemovedNode) (*karpv1.NodeClaim, *corev1.Node, error) {
	claim, err := r.objects.claim(ctx, gone.Claim)
	if err != nil {
		return nil, nil, err
	}
	node, err := r.objects.node(ctx, gone.Node, gone.NodeUID)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case claim == nil || !claim.DeletionTimestamp.IsZero() || node == nil || !node.DeletionTimestamp.IsZero():
		return nil, nil, giveUp(workflows.FailureChanged, "node %s of NodeClaim %s is gone or is being removed", gone.Node, gone.Claim.Name)
	case disrupted(node) && node.Annotations[karpv1.ReplacementAnnotationKey] != id:
		return nil, nil, giveUp(workflows.FailureChanged, "node %s is being drained or replaced by somebody else", gone.Node)
	}
	return claim, node, nil
}

// markReplaced marks a node that is being replaced, and writes the reason on its claim. The mark on the Node is written
// first and removed last: a claim with the condition whose Node has no mark was marked by Karpenter. Events precede the
// last write, so that an interrupted attempt is followed by one that emits them.
func (r *replacer) markReplaced(ctx context.Context, in workflows.ReplacementCommand, why string, claim *karpv1.NodeClaim, node *corev1.Node) error {
	marked := disrupted(node) && claim.IsTrue(karpv1.ConditionTypeDisruptionReason)
	node, err := r.objects.change(ctx, node, "mark", func(node *corev1.Node) {
		taintDisrupted(node)
		setAnnotation(node, karpv1.ReplacementAnnotationKey, in.ID)
	})
	if err != nil {
		return err
	}
	if !marked {
		r.tellReplaced(in, why, claim, node)
	}
	return r.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: in.Reason, Message: why})
	})
}

// tellReplaced emits the Events of a node that is to be replaced. Like Karpenter, it emits the Event of a launch only where
// there is one; the removal of every node has an Event of its own. Nodes consolidated as underutilized under the policy
// Balanced always get an Event.
func (r *replacer) tellReplaced(in workflows.ReplacementCommand, why string, claim *karpv1.NodeClaim, node *corev1.Node) {
	pool := r.mirror.NodePool(claim.Labels[karpv1.NodePoolLabelKey])
	if in.Reason == string(karpv1.DisruptionReasonUnderutilized) && pool != nil && pool.Spec.Disruption.ConsolidationPolicy == karpv1.ConsolidationPolicyBalanced {
		r.events.tellBoth(node, claim, corev1.EventTypeNormal, eventConsolidationApproved, why)
	}
	if len(in.Claims) > 0 {
		r.events.tellBoth(node, claim, corev1.EventTypeNormal, eventDisruptionLaunching,
			fmt.Sprintf("%s: launching %s first (replacement %s): %s", in.Reason, counted(len(in.Claims), "replacement", "replacements"), in.ID, why))
	}
}

// createReplacements creates the claims that do not exist yet. Claims that are alike are adjacent.
func (r *replacer) createReplacements(ctx context.Context, in workflows.ReplacementCommand) (workflows.BeginResult, error) {
	var result workflows.BeginResult
	if len(in.Claims) == 0 {
		return result, nil
	}
	claims := thawed(in.Claims)
	groups := groupNames(in.ID, claims)
	for i, planned := range claims {
		pool := r.mirror.NodePool(planned.NodePool)
		if pool == nil || !pool.DeletionTimestamp.IsZero() {
			return result, giveUp(workflows.FailureChanged, "NodePool %s is gone", planned.NodePool)
		}
		claim, err := r.createReplacement(ctx, in, i, planned, pool, groups[i])
		if err != nil {
			return result, err
		}
		r.mirror.Assume(claim)
		ref := workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}
		if last := len(result.Groups) - 1; last >= 0 && result.Groups[last].Group == groups[i] {
			result.Groups[last].Claims = append(result.Groups[last].Claims, ref)
		} else {
			result.Groups = append(result.Groups, workflows.LaunchGroup{Group: groups[i], NodePool: planned.NodePool, Claims: []workflows.ClaimRef{ref}})
		}
		result.SeenVersion = workflows.NewerVersion(result.SeenVersion, claim.ResourceVersion)
	}
	return result, nil
}

// createReplacement creates the claim with the given number of a replacement, unless an earlier attempt has.
func (r *replacer) createReplacement(ctx context.Context, in workflows.ReplacementCommand, number int, planned plan.Claim, pool *karpv1.NodePool, group string) (*karpv1.NodeClaim, error) {
	for try := 0; ; try++ {
		draft, err := r.catalogue.draft(planned, pool, group, replacementName(in.ID, planned.NodePool, number, try))
		if err != nil {
			return nil, err
		}
		draft.Annotations[karpv1.ReplacementAnnotationKey] = in.ID
		err = r.objects.Create(ctx, draft)
		switch {
		case err == nil:
			r.counts.claimCreated(draft, in.Reason)
			return draft, nil
		case !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("create NodeClaim %s: %w", draft.Name, err)
		}
		there, err := r.objects.claim(ctx, workflows.ClaimRef{Name: draft.Name})
		switch {
		case err != nil:
			return nil, err
		case there != nil && there.Annotations[karpv1.ReplacementAnnotationKey] == in.ID:
			return there, nil
		case try == nameTries:
			return nil, fmt.Errorf("create NodeClaim %s: other claims have its names", draft.Name)
		}
	}
}

// replacementName returns the name of a replacement's claim with the given number. A try above 0 gives another name, for
// when another claim has the previous one.
func replacementName(id, pool string, number, try int) string {
	return claimName(pool, fmt.Sprintf("%s/%d/%d", id, number, try))
}
