package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// The reasons of the Events on NodePools and Nodes about approvals.
const (
	// eventApprovalRequired says that a decision about the node waits for a person: tenon approve or tenon reject.
	eventApprovalRequired = "ApprovalRequired"
	// eventApprovalGranted says who has approved a decision about the node. It is carried out if it still holds.
	eventApprovalGranted = "ApprovalGranted"
	// eventApprovalRejected says who has rejected a decision about the node, why, and until when it is not proposed again.
	eventApprovalRejected = "ApprovalRejected"
	// eventApprovalExpired says that nobody has approved a decision about the node in time. It may be proposed again.
	eventApprovalExpired = "ApprovalExpired"
	// eventApprovalOutdated says why a decision that waited for approval no longer holds.
	eventApprovalOutdated = "ApprovalOutdated"
)

// approver asks people to approve decisions, and writes down what they decide. Both are on the NodeClaims, where they survive
// the loss of Temporal's database, and where the planner reads them.
type approver struct {
	objects   objects
	mirror    Mirror
	evaluator *evaluator
	events    recorder
	log       *zap.Logger
}

// AskApproval marks the NodeClaims of a proposal as waiting for a person, and tells people by Events. It asks nobody if one of
// the claims is gone, or if people have decided about the same already.
func (a *approver) AskApproval(ctx context.Context, in workflows.AskApprovalInput) (workflows.ApprovalChecked, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	claims, gone, err := a.claims(ctx, in.Nodes)
	if err != nil || gone != "" {
		return workflows.ApprovalChecked{Outdated: gone}, err
	}
	asked := approvalOf(in.Proposal, karpv1.ApprovalWaiting, in.Since, in.Until)
	for _, claim := range claims {
		found := karpv1.ApprovalOf(readApprovals(claim), asked.Reason, asked.For, time.Now())
		if found != nil && found.State != karpv1.ApprovalWaiting {
			return workflows.ApprovalChecked{Outdated: fmt.Sprintf("NodeClaim %s: %s has decided about it already (%s)", claim.Name, found.By, found.State)}, nil
		}
	}
	for _, claim := range claims {
		if err := a.write(ctx, claim, func(approvals []karpv1.Approval) []karpv1.Approval {
			return karpv1.SetApproval(approvals, asked, time.Now())
		}); err != nil {
			return workflows.ApprovalChecked{}, err
		}
	}
	text := fmt.Sprintf("%s: waits for approval until %s: %s (tenon approve %s)", in.Reason, in.Until.UTC().Format(time.RFC3339), in.Does, in.ID)
	if in.Reminder > 0 {
		text = fmt.Sprintf("reminder %d: %s", in.Reminder, text)
	}
	a.tell(ctx, in.Nodes, eventApprovalRequired, text)
	return workflows.ApprovalChecked{}, nil
}

// SettleApproval writes onto the NodeClaims what has become of a proposal, and tells people by Events. What a person has
// approved is checked once more against the present cluster, and is not written if it no longer holds.
func (a *approver) SettleApproval(ctx context.Context, in workflows.SettleApprovalInput) (workflows.ApprovalChecked, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	state, event, text := karpv1.ApprovalState(""), eventApprovalOutdated, ""
	switch in.Outcome {
	case workflows.ApprovalApproved:
		outdated, err := a.outdated(ctx, in)
		if err != nil {
			return workflows.ApprovalChecked{}, err
		}
		if outdated != "" {
			in.Outcome, in.Why = workflows.ApprovalOutdated, outdated
			break
		}
		state, event, text = karpv1.ApprovalGranted, eventApprovalGranted, "approved by "+in.By
	case workflows.ApprovalRejected:
		state, event = karpv1.ApprovalRejected, eventApprovalRejected
		text = fmt.Sprintf("rejected by %s, not proposed again before %s", in.By, in.Until.UTC().Format(time.RFC3339))
	case workflows.ApprovalExpired:
		event, text = eventApprovalExpired, "nobody has approved it in time"
	}
	if in.Outcome == workflows.ApprovalOutdated {
		text = "needs no approval any more"
	}
	if in.Why != "" {
		text += ": " + in.Why
	}
	decided := approvalOf(in.Proposal, state, in.At, in.Until)
	decided.By, decided.Note = in.By, in.Why
	for i := range in.Nodes {
		claim, err := a.objects.claim(ctx, in.Nodes[i].Claim)
		if err != nil {
			return workflows.ApprovalChecked{}, err
		}
		if claim == nil {
			continue
		}
		if err := a.write(ctx, claim, func(approvals []karpv1.Approval) []karpv1.Approval {
			if state == "" {
				return karpv1.DropApproval(approvals, in.ID, in.At)
			}
			return karpv1.SetApproval(approvals, decided, in.At)
		}); err != nil {
			return workflows.ApprovalChecked{}, err
		}
	}
	a.tell(ctx, in.Nodes, event, fmt.Sprintf("%s (%s): %s", in.Reason, in.ID, text))
	logs.Of(ctx, a.log).Info("approval settled", zap.String("approval", in.ID), zap.String("outcome", in.Outcome), zap.String("reason", in.Reason), zap.String("by", in.By),
		zap.String("why", in.Why), zap.Int("nodes", len(in.Nodes)))
	if in.Outcome == workflows.ApprovalOutdated {
		return workflows.ApprovalChecked{Outdated: in.Why}, nil
	}
	return workflows.ApprovalChecked{}, nil
}

// outdated says why a decision no longer holds in the present cluster; empty if it holds. An earlier attempt may have written
// that it was approved: then it holds.
func (a *approver) outdated(ctx context.Context, in workflows.SettleApprovalInput) (string, error) {
	claims, gone, err := a.claims(ctx, in.Nodes)
	if err != nil || gone != "" {
		return gone, err
	}
	if !slices.ContainsFunc(claims, func(claim *karpv1.NodeClaim) bool {
		return !slices.ContainsFunc(readApprovals(claim), func(a karpv1.Approval) bool { return a.ID == in.ID && a.State == karpv1.ApprovalGranted })
	}) {
		return "", nil
	}
	if err := a.mirror.Fresh(freshEnough); err != nil {
		return "", fmt.Errorf("check what was approved: %w", err)
	}
	snapshot := a.mirror.Snapshot()
	input := a.evaluator.inputs.of(ctx, snapshot, nil)
	return plan.Outdated(input, a.evaluator.answer(input), approvalOf(in.Proposal, karpv1.ApprovalWaiting, in.At, in.Until)), nil
}

// Propose asks the planner for which decisions people have to be asked, and which of those that wait no longer hold.
func (e *evaluator) Propose(ctx context.Context, snapshot *plan.Snapshot) plan.Approvals {
	input := e.inputs.of(ctx, snapshot, nil)
	input.Begun = begun(e.lately.counted(snapshot, e.lately.get()))
	return plan.Propose(input, e.answer(input))
}

// claims reads the NodeClaims of nodes. If one is gone or is being removed, it says so instead.
func (a *approver) claims(ctx context.Context, nodes []workflows.RemovedNode) (claims []*karpv1.NodeClaim, gone string, err error) {
	for i := range nodes {
		claim, err := a.objects.claim(ctx, nodes[i].Claim)
		if err != nil {
			return nil, "", err
		}
		if claim == nil || !claim.DeletionTimestamp.IsZero() {
			return nil, fmt.Sprintf("NodeClaim %s is gone or is being removed", nodes[i].Claim.Name), nil
		}
		claims = append(claims, claim)
	}
	return claims, "", nil
}

func approvalOf(p workflows.Proposal, state karpv1.ApprovalState, since, until time.Time) karpv1.Approval {
	approval := karpv1.Approval{ID: p.ID, State: state, Reason: karpv1.DisruptionReason(p.Reason), For: p.For, Does: p.Does, SavesPerHour: p.SavesPerHour, Zone: p.Zone,
		Since: since.UTC().Truncate(time.Second), Until: until.UTC().Truncate(time.Second)}
	for i := range p.Nodes {
		approval.Claims = append(approval.Claims, p.Nodes[i].Claim.Name)
	}
	return approval
}

func readApprovals(claim *karpv1.NodeClaim) []karpv1.Approval {
	return karpv1.ReadApprovals(claim.Annotations[karpv1.ApprovalsAnnotationKey])
}

// write changes what is written about approvals on a claim, unless edit changes nothing. After a concurrent change it reads
// the claim again and repeats the edit. A claim that is gone needs no change.
func (a *approver) write(ctx context.Context, claim *karpv1.NodeClaim, edit func([]karpv1.Approval) []karpv1.Approval) error {
	for {
		before := claim.DeepCopy()
		if text := karpv1.FormatApprovals(edit(readApprovals(claim))); text == "" {
			delete(claim.Annotations, karpv1.ApprovalsAnnotationKey)
		} else {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.ApprovalsAnnotationKey, text)
		}
		if equality.Semantic.DeepEqual(before.Annotations, claim.Annotations) {
			return nil
		}
		err := a.objects.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return ignoreNotFound("write the approvals of NodeClaim "+before.Name, err)
		}
		if claim, err = a.objects.claim(ctx, workflows.ClaimRef{Name: before.Name, UID: string(before.UID)}); err != nil || claim == nil {
			return err
		}
	}
}

// forget removes from a claim, as the mirror has it, that people are asked to approve something.
func (a *approver) forget(ctx context.Context, seen *karpv1.NodeClaim, id string, now time.Time) error {
	claim, err := a.objects.claim(ctx, workflows.ClaimRef{Name: seen.Name, UID: string(seen.UID)})
	if err != nil || claim == nil {
		return err
	}
	return a.write(ctx, claim, func(approvals []karpv1.Approval) []karpv1.Approval { return karpv1.DropApproval(approvals, id, now) })
}

// tell emits an Event on the NodePools and the Nodes of a proposal.
func (a *approver) tell(ctx context.Context, nodes []workflows.RemovedNode, event, text string) {
	kind := corev1.EventTypeNormal
	if event == eventApprovalExpired {
		kind = corev1.EventTypeWarning
	}
	told := map[string]bool{}
	for i := range nodes {
		if pool := a.mirror.NodePool(nodes[i].NodePool); pool != nil && !told[pool.Name] {
			told[pool.Name] = true
			a.events.tell(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID}, kind, event, text)
		}
		if node := a.mirror.Node(nodes[i].Node); node != nil && string(node.UID) == nodes[i].NodeUID && ctx.Err() == nil {
			a.events.tell(node, kind, event, text)
		}
	}
}

// unapproved says why nodes may not go for a reason now although they were chosen to: their NodePools want approval that
// they do not have. It is empty if all may go. The planner knows it from the mirror; this asks the API server at the moment of
// acting, because the annotation may have been written since the decision, or the approval may be over.
func (s stops) unapproved(ctx context.Context, reason string, nodes ...workflows.RemovedNode) (string, error) {
	pools := map[string]*karpv1.NodePool{}
	for i := range nodes {
		pool, known := pools[nodes[i].NodePool]
		if !known {
			var err error
			if pool, err = s.pool(ctx, nodes[i].NodePool); err != nil {
				return "", err
			}
			pools[nodes[i].NodePool] = pool
		}
		if pool == nil || !pool.NeedsApproval(karpv1.DisruptionReason(reason)) {
			continue
		}
		claim, err := s.objects.claim(ctx, nodes[i].Claim)
		if err != nil {
			return "", err
		}
		if claim != nil && !claim.MayGo(pool, karpv1.DisruptionReason(reason), time.Now()) {
			return fmt.Sprintf("NodePool %s wants approval before NodeClaim %s goes for being %s (%s)", pool.Name, claim.Name, reason, karpv1.ApprovalAnnotationKey), nil
		}
	}
	return "", nil
}
