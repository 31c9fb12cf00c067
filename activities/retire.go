package activities

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// ownersMost bounds the owners whose moved pods are waited for.
const ownersMost = 200

// Retire lets the nodes of a replacement go: it looks once more whether they may, and deletes their claims. A node that
// somebody else has ended meanwhile is done with; the others go all the same. Where one may not go, none does.
func (a *Activities) Retire(ctx context.Context, in workflows.RetireInput) (workflows.RetireResult, error) {
	ctx, done := attend(ctx)
	defer done()
	var result workflows.RetireResult
	var going []candidate
	for _, gone := range in.Nodes {
		c, state, err := a.left(ctx, in, gone)
		switch {
		case err != nil:
			return result, err
		case state == retired:
			result.Retired = append(result.Retired, gone.Claim.Name)
		case state == passed:
			result.Gone = append(result.Gone, gone.Claim.Name)
		default:
			going = append(going, c)
		}
	}
	if len(going) == 0 {
		return result, a.openReplacements(ctx, in.Claims)
	}
	if err := a.Mirror.Fresh(freshEnough); err != nil {
		return result, fmt.Errorf("let nodes go: %w", err)
	}
	if err := a.mayGo(ctx, in, going, &result); err != nil {
		return result, err
	}
	if in.Open || len(result.Blocked) == 0 {
		if err := a.openReplacements(ctx, in.Claims); err != nil {
			return result, err
		}
	}
	if len(result.Blocked) > 0 {
		return result, nil
	}
	var err error
	if in.Owners {
		if result.Owners, err = a.owners(ctx, going); err != nil {
			return result, err
		}
	}
	for _, c := range going {
		kept, err := a.remove(ctx, c.gone, in.Reason)
		if err != nil {
			return result, err
		}
		if kept != "" {
			result.Gone = append(result.Gone, c.gone.Claim.Name)
			continue
		}
		result.Retired = append(result.Retired, c.gone.Claim.Name)
		text := fmt.Sprintf("%s: everything its pods need serves (replacement %s)", in.Reason, in.ID)
		if in.Why != "" {
			text += ": " + in.Why
		}
		a.tellBoth(c.node, c.claim, corev1.EventTypeNormal, "DisruptionTerminating", text)
	}
	a.Log.Info("replacement lets nodes go", zap.String("replacement", in.ID), zap.String("reason", in.Reason), zap.Strings("claims", result.Retired), zap.Strings("gone", result.Gone))
	return result, nil
}

// candidate is a node that is to go, as the API server has it.
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

// left reads a candidate. One that an earlier try has let go is told by its mark from one that somebody else ended.
func (a *Activities) left(ctx context.Context, in workflows.RetireInput, gone workflows.RemovedNode) (candidate, stage, error) {
	c := candidate{gone: gone}
	var err error
	if c.claim, err = a.claim(ctx, gone.Claim); err != nil {
		return c, passed, err
	}
	if c.node, err = a.drains.node(ctx, gone.Node, gone.NodeUID); err != nil {
		return c, passed, err
	}
	switch {
	case c.node != nil && c.node.Annotations[karpv1.ReplacementAnnotationKey] == in.ID && c.node.Annotations[ReasonAnnotation] == in.Reason &&
		(c.claim == nil || !c.claim.DeletionTimestamp.IsZero()):
		return c, retired, nil
	case c.claim == nil || c.node == nil || !c.claim.DeletionTimestamp.IsZero() || !c.node.DeletionTimestamp.IsZero():
		return c, passed, nil
	}
	return c, there, nil
}

// mayGo says what keeps nodes that are marked, and whether that is worth waiting for. What a person may have written a
// moment ago is read from the API server; where the pods go is asked of the planner.
func (a *Activities) mayGo(ctx context.Context, in workflows.RetireInput, going []candidate, result *workflows.RetireResult) error {
	claims, keys := map[string]bool{}, make([]string, 0, len(going))
	for _, c := range going {
		claims[c.claim.Name] = true
		keys = append(keys, c.claim.Name)
		why, err := a.protected(ctx, c, karpv1.DisruptionReason(in.Reason))
		if err != nil {
			return err
		}
		if why != "" {
			result.Blocked, result.ForGood = append(result.Blocked, c.gone.Node+": "+why), true
		}
	}
	if len(result.Blocked) > 0 {
		return nil
	}
	// Hundreds of replacements may come this far at the same moment; one after the other they need no more memory than one.
	a.confirming.Lock()
	defer a.confirming.Unlock()
	snapshot := a.Mirror.Snapshot()
	overlay(snapshot, claims)
	for _, verdict := range plan.Confirm(a.input(ctx, snapshot, nil), karpv1.DisruptionReason(in.Reason), keys) {
		result.Blocked = append(result.Blocked, verdict.Node+": "+verdict.Message)
		result.ForGood = result.ForGood || verdict.Cause == plan.CauseNode || verdict.Cause == plan.CausePod
		result.Crowded = result.Crowded || verdict.Cause == plan.CauseRoom
	}
	return nil
}

// protected says what asks, on the Node, its claim or its pods, not to be disrupted.
func (a *Activities) protected(ctx context.Context, c candidate, reason karpv1.DisruptionReason) (string, error) {
	pods, err := a.podsOn(ctx, c.gone.Node)
	if err != nil {
		return "", err
	}
	reduce := plan.NewInterner()
	node := plan.Join(reduce.Claim(c.claim), reduce.Node(c.node))
	for i := range pods {
		node.Pods = append(node.Pods, reduce.Pod(&pods[i]))
	}
	return plan.Protected(node, reason, a.Mirror.Snapshot().Time), nil
}

// podsOn reads the pods of a node.
func (a *Activities) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := a.Kube.List(ctx, &pods, client.MatchingFields{podNode: node}); err != nil {
		return nil, fmt.Errorf("list pods of Node %s: %w", node, err)
	}
	return pods.Items, nil
}

// owners are the controllers of the pods that will have to move, with how many pods each has now.
func (a *Activities) owners(ctx context.Context, going []candidate) ([]workflows.PodOwner, error) {
	found := map[workflows.PodOwner]bool{}
	reduce := plan.NewInterner()
	for _, c := range going {
		pods, err := a.podsOn(ctx, c.gone.Node)
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
	owners = owners[:min(len(owners), ownersMost)]
	for i := range owners {
		owners[i].Pods = len(a.Mirror.PodsOwnedBy(owners[i].Namespace, owners[i].Kind, owners[i].Name))
	}
	return owners, nil
}
