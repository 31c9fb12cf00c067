package starter

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// launchPatience is how long a claim of a launch group may stay without an instance before its Launch is asked for
// again. Its Provisioning started one; asking is free while that one runs.
const launchPatience = time.Minute

// claimChanged looks at one claim and says what its workflows have to know. It returns when to look again, zero for
// not before the next change.
func (s *Starter) claimChanged(ctx context.Context, name string) (time.Duration, error) {
	claim := s.Mirror.Claim(name)
	switch {
	case claim == nil:
		return 0, nil
	case claim.Status.ProviderID == "":
		return s.unlaunched(ctx, claim)
	case !claim.DeletionTimestamp.IsZero():
		return s.claimDeleted(ctx, claim)
	}
	if claim.Annotations[karpv1.InterruptionAnnotationKey] != "" {
		if err := s.interruptionNoted(ctx, claim); err != nil {
			return 0, err
		}
	}
	return s.nodeGone(ctx, claim)
}

// unlaunched sees to it that a claim without an instance has a Launch: at once where a person made it, and after a
// while where a plan did, since its own Launch is on the way. One that was made for a replacement is left to the sweep,
// which asks first whether that is still under way.
func (s *Starter) unlaunched(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	if claim.Annotations[karpv1.ReplacementAnnotationKey] != "" && claim.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	byHand := claim.Annotations[karpv1.LaunchGroupAnnotationKey] == ""
	if age := time.Since(claim.CreationTimestamp.Time); !byHand && age < launchPatience {
		return launchPatience - age, nil
	}
	if byHand && !s.told.news(claim.UID, "launch") {
		return launchPatience, nil
	}
	in := workflows.LaunchInput{Cluster: s.Cluster, ClusterUID: s.ClusterUID, LaunchGroup: workflows.UnlaunchedGroup(claim, s.Mirror.Claims()), Adopted: !byHand}
	if err := s.start(ctx, workflows.LaunchOptions(s.Cluster, in.LaunchGroup), workflows.LaunchType, in); err != nil {
		return 0, err
	}
	s.told.keep(claim.UID, "launch")
	s.Log.Info("launch asked for", zap.String("claim", claim.Name), zap.String("group", in.Group), zap.Bool("byHand", byHand))
	return launchPatience, nil
}

// claimDeleted tells the claim's workflow that the claim is being deleted, and by when its node has to be drained. It
// returns when more of the node's pods need another place.
func (s *Starter) claimDeleted(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	first := s.told.news(claim.UID, workflows.ReasonClaimDeleted)
	if first {
		deadline := claim.DrainDeadline(claim.DeletionTimestamp.Time)
		if err := s.noteDeadline(ctx, claim, deadline); err != nil {
			return 0, err
		}
		ending := workflows.Ending{Reason: s.recordedReason(ctx, claim), Deadline: deadline, Deleting: true}
		if err := s.end(ctx, claim, ending); err != nil {
			return 0, err
		}
		s.told.keep(claim.UID, workflows.ReasonClaimDeleted)
	}
	now := time.Now()
	more, next := s.losesMore(claim, now)
	if more || first && s.leavesPods(claim, now) {
		s.leaving.add(claim.ResourceVersion)
	}
	return next, nil
}

// recordedReason is why a claim is being deleted: what the one who deleted it noted on its Node, or on the claim where
// there was none, and otherwise that somebody deleted the claim. The mirror may see the deletion before what was noted
// on the Node earlier, so that the API server is asked where it has nothing.
func (s *Starter) recordedReason(ctx context.Context, claim *karpv1.NodeClaim) string {
	if reason := claim.Annotations[karpv1.RemovalReasonAnnotationKey]; reason != "" {
		return reason
	}
	if node := s.Mirror.Node(claim.Status.NodeName); node != nil {
		if reason := node.Annotations[karpv1.RemovalReasonAnnotationKey]; reason != "" {
			return reason
		}
		var now corev1.Node
		if err := s.Kube.Get(ctx, kube.ObjectKeyFromObject(node), &now); err == nil && now.UID == node.UID && now.Annotations[karpv1.RemovalReasonAnnotationKey] != "" {
			return now.Annotations[karpv1.RemovalReasonAnnotationKey]
		}
	}
	return workflows.ReasonClaimDeleted
}

// eventExpiring is the reason, Karpenter's, of the Event by which people learn of the end of a drain.
const eventExpiring = "TerminationGracePeriodExpiring"

// noteDeadline writes the drain's deadline onto the claim where Karpenter's users look for it, and tells people of it.
func (s *Starter) noteDeadline(ctx context.Context, claim *karpv1.NodeClaim, deadline time.Time) error {
	if deadline.IsZero() || claim.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] != "" {
		return nil
	}
	noted := claim.DeepCopy()
	if noted.Annotations == nil {
		noted.Annotations = map[string]string{}
	}
	noted.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] = deadline.UTC().Format(time.RFC3339)
	if err := s.Kube.Patch(ctx, noted, kube.MergeFrom(claim)); err != nil {
		return kube.IgnoreNotFound(fmt.Errorf("note the drain deadline on NodeClaim %s: %w", claim.Name, err))
	}
	if s.Events != nil {
		message := "All pods will be deleted by " + noted.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey]
		s.Events.Event(noted, corev1.EventTypeWarning, eventExpiring, message)
		if node := s.Mirror.Node(claim.Status.NodeName); node != nil {
			s.Events.Event(node, corev1.EventTypeWarning, eventExpiring, message)
		}
	}
	return nil
}

// end signals an ending to a claim's workflow. A claim without one, because it came with the cluster or because a
// person terminated the workflow, gets it now, with the instance its status names.
func (s *Starter) end(ctx context.Context, claim *karpv1.NodeClaim, ending workflows.Ending) error {
	in := workflows.ClaimInput(s.Cluster, s.ClusterUID, claim)
	return s.signal(ctx, workflows.NodeClaimOptions(in), workflows.NodeClaimType, in, workflows.SignalEnding, ending)
}

// nodeChanged tells the workflow of a Node's claim that the Node is being deleted, as kubectl delete node does: the
// Node's finalizer keeps it until the workflow has drained it. Where nothing has kept it, the machine is ended.
func (s *Starter) nodeChanged(ctx context.Context, name string) error {
	node := s.Mirror.Node(name)
	switch {
	case node == nil:
		s.nodesGone(name)
		return nil
	case node.DeletionTimestamp.IsZero():
		return nil
	}
	claim := s.Mirror.ClaimOfNode(name)
	if claim == nil || !claim.DeletionTimestamp.IsZero() || !s.told.news(node.UID, workflows.ReasonNodeDeleted) {
		return nil
	}
	if err := s.end(ctx, claim, workflows.Ending{Reason: nodeDeletedReason(node)}); err != nil {
		return err
	}
	s.told.keep(node.UID, workflows.ReasonNodeDeleted)
	return nil
}

func nodeDeletedReason(node *corev1.Node) string {
	if reason := node.Annotations[karpv1.RemovalReasonAnnotationKey]; reason != "" {
		return reason
	}
	return workflows.ReasonNodeDeleted
}
