package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// adoptions starts the workflows of claims that have none, and tells those whose claim's instance is gone.
func (s *sweep) adoptions(ctx context.Context, claims []*karpv1.NodeClaim) {
	launched, lost := 0, 0
	for _, claim := range claims {
		if claim.Status.ProviderID == "" {
			continue
		}
		launched++
		if s.lost(claim) {
			lost++
		}
	}
	doubtful := lost > sweepMost(s.share, launched) && 2*lost > launched && s.share < 1
	if doubtful {
		s.result.Stopped = fmt.Sprintf("the cloud shows no instance for %d of %d launched NodeClaims; none is ended for that. "+
			"Look whether the worker asks the right account and region, or run it with --sweep-most=1 if they are gone", lost, launched)
	}
	var strange []*karpv1.NodeClaim
	for _, claim := range claims {
		if doubtful && s.lost(claim) {
			continue
		}
		// The workflow of one of our claims runs before it records the instance. A claim with an instance and no workflow
		// was launched by another controller, and is adopted however young it is.
		if s.now.Sub(claim.CreationTimestamp.Time) < adoptAge && (claim.Status.ProviderID == "" || s.lost(claim)) {
			continue
		}
		if claim.DeletionTimestamp.IsZero() && s.keepsAway(claim) {
			continue
		}
		_, lives := s.listed[s.cluster.NodeClaimID(claim.Name)]
		switch {
		case claim.Status.ProviderID == "":
			s.fail("NodeClaim "+claim.Name, s.adoptLaunch(ctx, claim, claims))
		case s.lost(claim):
			s.fail("NodeClaim "+claim.Name, s.tellLost(ctx, claim))
		case !lives:
			strange = append(strange, claim)
		}
	}
	s.adoptClaims(ctx, strange)
}

// keepsAway reports whether a claim is left alone because its NodePool is only observed or, as long as it has no instance,
// because launches are paused.
func (s *sweep) keepsAway(claim *karpv1.NodeClaim) bool {
	pool := s.mirror.NodePool(claim.Labels[karpv1.NodePoolLabelKey])
	if pool != nil && pool.Observed() {
		return true
	}
	return claim.Status.ProviderID == "" && karpv1.StopOf(karpv1.PauseProvisioning, s.mirror.Pauses(), pool, s.now) != nil
}

// adoptLaunch starts the launch of a claim that has neither an instance nor a workflow. A claim that was made for a
// replacement which is over is deleted instead, because nobody needs its instance.
func (s *sweep) adoptLaunch(ctx context.Context, claim *karpv1.NodeClaim, all []*karpv1.NodeClaim) error {
	if orphaned, err := s.dropOrphan(ctx, claim); orphaned || err != nil {
		return err
	}
	if running, err := s.running(ctx, s.cluster.NodeClaimID(claim.Name)); running || err != nil {
		return err
	}
	group := workflows.UnlaunchedGroup(claim, all)
	if running, err := s.running(ctx, s.cluster.LaunchID(group.Group)); running || err != nil {
		return err
	}
	in := workflows.LaunchInput{Cluster: s.cluster, ClusterUID: s.clusterUID, LaunchGroup: group, Adopted: true}
	if _, err := s.executions.ExecuteWorkflow(ctx, workflows.LaunchOptions(s.cluster, group).Client(), workflows.LaunchType, in); err != nil {
		return fmt.Errorf("adopt NodeClaim %s: %w", claim.Name, err)
	}
	s.result.Adopted = append(s.result.Adopted, claim.Name)
	return nil
}

// adoptAtOnce is how many claims are adopted in parallel. Each takes three requests, and after another controller there may
// be thousands.
const adoptAtOnce = 32

// adoptClaims starts the workflows of launched claims that have none.
func (s *sweep) adoptClaims(ctx context.Context, claims []*karpv1.NodeClaim) {
	adopted, failed := make([]bool, len(claims)), make([]error, len(claims))
	var group errgroup.Group
	group.SetLimit(adoptAtOnce)
	for i, claim := range claims {
		group.Go(func() error {
			adopted[i], failed[i] = s.adoptClaim(ctx, claim)
			return nil
		})
	}
	_ = group.Wait() // failed holds the errors
	for i, claim := range claims {
		s.fail("NodeClaim "+claim.Name, failed[i])
		if adopted[i] {
			s.result.Adopted = append(s.result.Adopted, claim.Name)
		}
	}
}

// adoptClaim starts the workflow of a launched claim, unless the workflow is running or the claim is gone.
func (s *sweep) adoptClaim(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	in := workflows.ClaimInput(s.cluster, s.clusterUID, s.cloud.Kind().Labels, claim)
	options := workflows.NodeClaimOptions(in)
	if running, err := s.executions.runs(ctx, options.ID); running || err != nil {
		return false, err
	}
	if there, err := s.objects.claim(ctx, in.Claim); there == nil || err != nil {
		return false, err
	}
	if _, err := s.executions.ExecuteWorkflow(ctx, options.Client(), workflows.NodeClaimType, in); err != nil {
		return false, fmt.Errorf("adopt NodeClaim %s: %w", claim.Name, err)
	}
	return true, nil
}

// tellLost tells the workflow of a launched claim that its instance is gone. It starts the workflow if there is none.
func (s *sweep) tellLost(ctx context.Context, claim *karpv1.NodeClaim) error {
	in := workflows.ClaimInput(s.cluster, s.clusterUID, s.cloud.Kind().Labels, claim)
	options := workflows.NodeClaimOptions(in)
	ending := workflows.Ending{Reason: workflows.ReasonInstanceGone, Lost: true, Deleting: !claim.DeletionTimestamp.IsZero()}
	err := s.executions.SignalWorkflow(ctx, options.ID, "", workflows.SignalEnding, ending)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		// A workflow ends after its claim. If the claim is gone too, the node was removed for another reason since the
		// claims were listed.
		there, claimErr := s.objects.claim(ctx, in.Claim)
		if there == nil || claimErr != nil {
			return claimErr
		}
		_, err = s.executions.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalEnding, ending, options.Client(), workflows.NodeClaimType, in)
	}
	if err != nil {
		return fmt.Errorf("tell NodeClaim %s that its instance is gone: %w", claim.Name, err)
	}
	s.result.Lost = append(s.result.Lost, claim.Name)
	return nil
}

// lost reports whether a claim's instance is gone: the cloud does not show it although it is old enough to be visible,
// nobody is terminating it, and its Node is not ready.
func (s *sweep) lost(claim *karpv1.NodeClaim) bool {
	if claim.Status.ProviderID == "" {
		return false
	}
	launched := claim.Condition(karpv1.ConditionTypeLaunched)
	if _, there := s.instances[claim.Status.ProviderID]; there || launched == nil || s.now.Sub(launched.LastTransitionTime.Time) < consistencyLag ||
		claim.IsTrue(karpv1.ConditionTypeInstanceTerminating) {
		return false
	}
	node := s.mirror.NodeByProviderID(claim.Status.ProviderID)
	return node == nil || !readiness.Ready(node)
}
