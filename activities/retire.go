package activities

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// maxOwners limits the number of owners whose moved pods are waited for.
const maxOwners = 200

// retirer removes the nodes that have been replaced.
type retirer struct {
	objects objects
	stops   stops
	mirror  Mirror
	inputs  *inputs
	// remover removes the nodes, and keeper opens their replacements.
	remover *remover
	keeper  *keeper
	// confirmer has the planner check nodes once more that are about to be removed.
	confirmer confirmer
	events    recorder
	log       *zap.Logger
}

// Retire checks once more that the nodes of a replacement may be removed, and deletes their NodeClaims. It skips a node
// that somebody else has removed meanwhile. If one node may not be removed, none is, unless the replacement is independent.
func (r *retirer) Retire(ctx context.Context, in workflows.RetireInput) (workflows.RetireResult, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	return r.retire(ctx, in, in.Independent && activity.GetInfo(ctx).Attempt >= triesEach)
}

// retire removes nodes. A node that the API server does not let it remove is an error or, with oneStays, a node that has to
// stay.
func (r *retirer) retire(ctx context.Context, in workflows.RetireInput, oneStays bool) (workflows.RetireResult, error) {
	var result workflows.RetireResult
	candidates, stages := make([]candidate, len(in.Nodes)), make([]stage, len(in.Nodes))
	if err := inParallel(ctx, len(in.Nodes), func(ctx context.Context, i int) (err error) {
		candidates[i], stages[i], err = r.readCandidate(ctx, in, in.Nodes[i])
		return err
	}); err != nil {
		return result, err
	}
	var going []candidate
	for i, c := range candidates {
		switch stages[i] {
		case retired:
			result.Retired = append(result.Retired, c.gone.Claim.Name)
		case passed:
			result.Gone = append(result.Gone, c.gone.Claim.Name)
		default:
			going = append(going, c)
		}
	}
	if len(going) == 0 {
		return result, r.open(ctx, in)
	}
	if err := r.mirror.Fresh(freshEnough); err != nil {
		return result, fmt.Errorf("let nodes go: %w", err)
	}
	going, err := r.notStopped(ctx, in, going, &result)
	if err != nil {
		return result, err
	}
	if going, err = r.mayGo(ctx, in, going, &result); err != nil {
		return result, err
	}
	if in.Open || len(going) > 0 {
		if err := r.open(ctx, in); err != nil {
			return result, err
		}
	}
	r.remover.counts.keptAtLast(in.Reason, len(result.Blocked))
	if len(result.Blocked) > 0 && !in.Independent {
		return result, nil
	}
	if in.Owners {
		if result.Owners, err = r.owners(ctx, going); err != nil {
			return result, err
		}
	}
	if err := r.deleteClaims(ctx, in, going, oneStays, &result); err != nil {
		return result, err
	}
	logs.Of(ctx, r.log).Info("replacement lets nodes go", zap.String("replacement", in.ID), zap.String("reason", in.Reason), zap.Strings("claims", result.Retired), zap.Strings("gone", result.Gone))
	return result, nil
}

// open opens the replacements for pods, unless that has to wait.
func (r *retirer) open(ctx context.Context, in workflows.RetireInput) error {
	if in.KeepTainted {
		return nil
	}
	return r.keeper.openReplacements(ctx, in.Claims)
}

// deleteClaims deletes the claims of nodes that may be removed, nearly simultaneously, so that the large pods of all of
// them move before the small pods of any. With oneStays, a node that cannot be removed does not stop the others.
func (r *retirer) deleteClaims(ctx context.Context, in workflows.RetireInput, going []candidate, oneStays bool, result *workflows.RetireResult) error {
	kept, claims, failed := make([]string, len(going)), make([]*karpv1.NodeClaim, len(going)), make([]error, len(going))
	tolerate := func(i int, err error) error {
		if err == nil || !oneStays || ctx.Err() != nil {
			return err
		}
		claims[i], failed[i] = nil, err
		return nil
	}
	err := inParallel(ctx, len(going), func(ctx context.Context, i int) (err error) {
		claims[i], kept[i], err = r.remover.markForRemoval(ctx, going[i].gone, in.Reason)
		return tolerate(i, err)
	})
	if err != nil {
		return err
	}
	err = inParallel(ctx, len(going), func(ctx context.Context, i int) error {
		if claims[i] == nil {
			return nil
		}
		return tolerate(i, r.remover.end(ctx, claims[i], going[i].gone, in.Reason))
	})
	if err != nil {
		return err
	}
	for i, c := range going {
		if failed[i] != nil {
			result.Blocked, result.ForGood = append(result.Blocked, c.gone.Node+": it cannot be let go: "+failed[i].Error()), true
			result.Left = append(result.Left, c.gone)
			continue
		}
		if kept[i] != "" {
			result.Gone = append(result.Gone, c.gone.Claim.Name)
			continue
		}
		result.Retired = append(result.Retired, c.gone.Claim.Name)
		text := fmt.Sprintf("%s: everything its pods need serves (replacement %s)", in.Reason, in.ID)
		if why := cmp.Or(c.gone.Why, in.Why); why != "" {
			text += ": " + why
		}
		r.events.tellBoth(c.node, c.claim, corev1.EventTypeNormal, eventDisruptionTerminating, text)
	}
	return nil
}

// candidate is a node that is to be removed, as read from the API server.
type candidate struct {
	gone  workflows.RemovedNode
	claim *karpv1.NodeClaim
	node  *corev1.Node
}

// stage is what has become of a candidate.
type stage int

const (
	there stage = iota
	retired
	passed
)

// readCandidate reads a candidate. The marks on the Node distinguish one that an earlier attempt has removed from one that
// somebody else has.
func (r *retirer) readCandidate(ctx context.Context, in workflows.RetireInput, gone workflows.RemovedNode) (candidate, stage, error) {
	c := candidate{gone: gone}
	var err error
	if c.claim, err = r.objects.claim(ctx, gone.Claim); err != nil {
		return c, passed, err
	}
	if c.node, err = r.objects.node(ctx, gone.Node, gone.NodeUID); err != nil {
		return c, passed, err
	}
	switch {
	case c.node != nil && c.node.Annotations[karpv1.ReplacementAnnotationKey] == in.ID && c.node.Annotations[karpv1.RemovalReasonAnnotationKey] == in.Reason &&
		(c.claim == nil || !c.claim.DeletionTimestamp.IsZero()):
		return c, retired, nil
	case c.claim == nil || c.node == nil || !c.claim.DeletionTimestamp.IsZero() || !c.node.DeletionTimestamp.IsZero():
		return c, passed, nil
	case in.Independent && c.node.Annotations[karpv1.ReplacementAnnotationKey] != in.ID:
		// It was never marked, because somebody else was disrupting it.
		return c, passed, nil
	}
	return c, there, nil
}

// mayGo returns the nodes that may be removed. It adds to result what keeps the others and whether waiting for that is of
// any use. What a person may just have written is read from the API server; whether the pods have a place is up to the
// planner.
func (r *retirer) mayGo(ctx context.Context, in workflows.RetireInput, candidates []candidate, result *workflows.RetireResult) ([]candidate, error) {
	why := make([]string, len(candidates))
	if err := inParallel(ctx, len(candidates), func(ctx context.Context, i int) (err error) {
		why[i], err = r.protected(ctx, candidates[i], karpv1.DisruptionReason(in.Reason))
		return err
	}); err != nil {
		return nil, err
	}
	var going []candidate
	for i, c := range candidates {
		if why[i] == "" {
			going = append(going, c)
			continue
		}
		result.Blocked, result.ForGood = append(result.Blocked, c.gone.Node+": "+why[i]), true
		result.Left = append(result.Left, c.gone)
	}
	for len(going) > 0 && (in.Independent || len(result.Blocked) == 0) {
		// While something protects a node, the planner does not say yet whether the pods of the others have a place.
		blocked, crowded, err := r.confirm(ctx, in, going, result)
		if err != nil {
			return nil, err
		}
		if len(blocked) == 0 {
			return going, nil
		}
		going = slices.DeleteFunc(going, func(c candidate) bool {
			if !blocked[c.claim.Name] {
				return false
			}
			result.Left = append(result.Left, c.gone)
			return true
		})
		if crowded {
			break
		}
	}
	if !in.Independent {
		result.Left = nil
		return nil, nil
	}
	return going, nil
}

// notStopped returns the nodes whose disruption nobody has stopped. The others stay for now: a pause may be short. Until the
// next maintenance window opens, old and new nodes would be paid for, so a replacement that has missed its window is undone.
func (r *retirer) notStopped(ctx context.Context, in workflows.RetireInput, candidates []candidate, result *workflows.RetireResult) ([]candidate, error) {
	if in.Reason == workflows.ReasonManualReplacement {
		return candidates, nil
	}
	stopped, err := r.stops.ofRemovals(ctx, karpv1.PauseDisruption, in.Reason, poolsOf(in.Nodes)...)
	if err != nil {
		return nil, err
	}
	halted, err := r.stops.rollouts(ctx, in.Reason, poolsOf(in.Nodes)...)
	if err != nil {
		return nil, err
	}
	var going []candidate
	for _, c := range candidates {
		why := halted[c.gone.NodePool]
		if stop := stopped[c.gone.NodePool]; stop != nil {
			why, result.ForGood = stop.String(), result.ForGood || stop.Window != ""
		}
		if why != "" {
			result.Blocked = append(result.Blocked, c.gone.Node+": "+why)
			result.Left = append(result.Left, c.gone)
			continue
		}
		going = append(going, c)
	}
	return going, nil
}

// confirm asks the planner about nodes. It returns the claims of the nodes that are kept, and whether pods lack room.
func (r *retirer) confirm(ctx context.Context, in workflows.RetireInput, going []candidate, result *workflows.RetireResult) (blocked map[string]bool, crowded bool, err error) {
	claims := make([]string, 0, len(going))
	for _, c := range going {
		claims = append(claims, c.claim.Name)
	}
	verdicts, err := r.confirmer.confirm(ctx, in.ID, karpv1.DisruptionReason(in.Reason), claims, r.askPlanner)
	if err != nil {
		return nil, false, fmt.Errorf("ask whether nodes may go: %w", err)
	}
	blocked = map[string]bool{}
	for _, verdict := range verdicts {
		blocked[verdict.Node] = true
		crowded = crowded || verdict.Cause == plan.CauseRoom
		result.Blocked = append(result.Blocked, verdict.Node+": "+verdict.Message)
		result.ForGood = result.ForGood || verdict.Cause == plan.CauseNode || verdict.Cause == plan.CausePod
	}
	result.NoRoom = result.NoRoom || crowded
	return blocked, crowded, nil
}

// askPlanner asks about nodes of replacements that all have the same reason.
func (r *retirer) askPlanner(ctx context.Context, leaves []*leave) []plan.Verdict {
	command, replacements := plan.Command{Reason: leaves[0].reason}, map[string]string{}
	for _, l := range leaves {
		command.Nodes = append(command.Nodes, l.claims...)
		for _, claim := range l.claims {
			replacements[claim] = l.replacement
		}
	}
	snapshot := r.mirror.Snapshot()
	overlay(snapshot, replacements)
	return plan.Confirm(r.inputs.of(ctx, snapshot, nil), command)
}

// protected returns what asks, on the Node, its claim or its pods, that it not be disrupted; empty if nothing does.
func (r *retirer) protected(ctx context.Context, c candidate, reason karpv1.DisruptionReason) (string, error) {
	pods, err := r.objects.podsOn(ctx, c.gone.Node)
	if err != nil {
		return "", err
	}
	reduce := new(plan.Interner)
	node := reduce.Claim(c.claim).Join(reduce.Node(c.node))
	for i := range pods {
		node.Pods = append(node.Pods, reduce.Pod(&pods[i]))
	}
	return plan.Protected(node, reason, time.Now()), nil
}

// owners returns the controllers of the pods that have to move, with how many pods each has now.
func (r *retirer) owners(ctx context.Context, going []candidate) ([]workflows.PodOwner, error) {
	found := map[workflows.PodOwner]bool{}
	reduce := new(plan.Interner)
	for _, c := range going {
		pods, err := r.objects.podsOn(ctx, c.gone.Node)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if pod := reduce.Pod(&pods[i]); pod.Reschedulable() && (pod.OwnerKind == "ReplicaSet" || pod.OwnerKind == "StatefulSet") {
				found[workflows.PodOwner{Namespace: pod.Namespace, Kind: pod.OwnerKind, Name: pod.OwnerName}] = true
			}
		}
	}
	owners := slices.SortedFunc(maps.Keys(found), func(a, b workflows.PodOwner) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	owners = owners[:min(len(owners), maxOwners)]
	for i := range owners {
		owners[i].Pods = len(r.mirror.PodsOwnedBy(owners[i].Namespace, owners[i].Kind, owners[i].Name))
	}
	return owners, nil
}
