package activities

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// changeStatus changes a claim's status, in memory and in the API server, unless edit changes nothing. The claim's own
// workflow is not the only one who writes there: the starter says whether the node has drifted, a Replacement that it is
// being replaced. A patch writes the list of conditions as a whole, so a claim that somebody has changed since it was
// read is read again and edited anew.
func (a *Activities) changeStatus(ctx context.Context, claim *karpv1.NodeClaim, edit func(*karpv1.NodeClaim)) error {
	for {
		before := claim.DeepCopy()
		edit(claim)
		if equality.Semantic.DeepEqual(before.Status, claim.Status) {
			return nil
		}
		err := a.Kube.Status().Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("write status of NodeClaim %s: %w", before.Name, err)
		}
		fresh, err := a.claim(ctx, workflows.ClaimRef{Name: before.Name, UID: string(before.UID)})
		if err != nil {
			return err
		}
		if fresh == nil {
			return fmt.Errorf("write status of NodeClaim %s: it is gone", before.Name)
		}
		*claim = *fresh
	}
}
