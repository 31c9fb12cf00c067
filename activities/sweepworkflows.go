package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// lives ends NodeClaim workflows whose claim is gone, because somebody removed its finalizer or the cluster was recreated
// under its old name. The workflows drain their nodes, if they exist, and terminate their instances as usual.
func (s *sweep) lives(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(s.listed)) {
		listed := s.listed[id]
		name, isLife := strings.CutPrefix(id, s.cluster.NodeClaimID(""))
		if !isLife || s.now.Sub(listed.started) < adoptAge || s.owned(name, listed) {
			continue
		}
		// The claims were listed before the workflows, so check again.
		claim, err := s.objects.claim(ctx, workflows.ClaimRef{Name: name, UID: listed.uid})
		if err != nil || claim != nil {
			s.fail("workflow "+id, err)
			continue
		}
		if s.endsNode(listed) && s.spend(1) > 0 || !s.swept.news(id+listed.run, s.now) {
			continue
		}
		ending := workflows.Ending{Reason: s.reasonGone(listed), Deleting: true}
		err = s.tell(ctx, id, workflows.SignalEnding, ending)
		s.fail("workflow "+id, err)
		if err == nil {
			s.result.Ended = append(s.result.Ended, id)
		}
	}
}

// strays tells drains whose node is gone, and workflows of claims that wait for a drain which somebody has terminated.
func (s *sweep) strays(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(s.listed)) {
		listed := s.listed[id]
		name, isDrain := strings.CutPrefix(id, s.cluster.DrainID(""))
		if !isDrain || listed.uid == "" || s.now.Sub(listed.started) < adoptAge {
			continue
		}
		if shown := s.mirror.Node(name); shown != nil && string(shown.UID) == listed.uid {
			continue
		}
		node, err := s.objects.node(ctx, name, listed.uid)
		if err != nil || node != nil {
			s.fail("workflow "+id, err)
			continue
		}
		err = s.tell(ctx, id, workflows.SignalDrainNotify, workflows.DrainWaiter{Gone: true})
		s.fail("workflow "+id, err)
		if err == nil {
			s.result.Ended = append(s.result.Ended, id)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		s.fail("NodeClaim "+name, s.waitsInVain(ctx, s.named[name]))
	}
}

// waitsInVain tells the workflow of a claim that is being deleted that its node is not drained, if no drain is running. The
// workflow may have been waiting for a drain that somebody had ordered, and then drains the node itself.
func (s *sweep) waitsInVain(ctx context.Context, claim *karpv1.NodeClaim) error {
	if claim.DeletionTimestamp.IsZero() || s.now.Sub(claim.DeletionTimestamp.Time) < adoptAge || claim.Status.NodeName == "" ||
		claim.IsTrue(karpv1.ConditionTypeInstanceTerminating) {
		return nil
	}
	life, drain := s.cluster.NodeClaimID(claim.Name), s.cluster.DrainID(claim.Status.NodeName)
	if _, lives := s.listed[life]; !lives {
		return nil
	}
	if running, err := s.running(ctx, drain); running || err != nil {
		return err
	}
	return s.tell(ctx, life, workflows.SignalDrainFinished, workflows.DrainResult{Outcome: workflows.DrainCanceled})
}

// tell signals a fact to a workflow. It ignores a workflow that has ended meanwhile.
func (s *sweep) tell(ctx context.Context, id, signal string, fact any) error {
	err := s.executions.SignalWorkflow(ctx, id, "", signal, fact)
	var missing *serviceerror.NotFound
	if err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("signal %s: %w", signal, err)
	}
	return nil
}
