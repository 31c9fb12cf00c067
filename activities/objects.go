package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// objects reads and writes Kubernetes objects in the API server directly, without a cache. It writes only what differs, and
// identifies objects by UID.
type objects struct{ client.WithWatch }

// claim reads a NodeClaim. It returns nil if the claim is gone or was replaced by another one of the same name.
func (o objects) claim(ctx context.Context, ref workflows.ClaimRef) (*karpv1.NodeClaim, error) {
	claim := &karpv1.NodeClaim{}
	if err := o.Get(ctx, client.ObjectKey{Name: ref.Name}, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read NodeClaim %s: %w", ref.Name, err)
	}
	if ref.UID != "" && string(claim.UID) != ref.UID {
		return nil, nil
	}
	return claim, nil
}

// claimsAtOnce is how many NodeClaims are read with one request, and so are in memory together. A claim with sixty instance
// types takes about 20 kB while it is decoded.
const claimsAtOnce = 250

// eachClaim reads all NodeClaims, or those with the given labels, from the API server directly, as of one moment. visit
// must not keep the claim it is given. If eachClaim fails, visit has seen only some of the claims, and nothing may be
// concluded.
func (o objects) eachClaim(ctx context.Context, labels client.MatchingLabels, visit func(*karpv1.NodeClaim)) error {
	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		list := &karpv1.NodeClaimList{}
		err := o.List(ctx, list, labels, &client.ListOptions{Limit: page.Limit, Continue: page.Continue, Raw: &page})
		return list, err
	})
	pages.PageSize, pages.PageBufferSize = claimsAtOnce, 0
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(claim runtime.Object) error {
		visit(claim.(*karpv1.NodeClaim))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list NodeClaims: %w", err)
	}
	return nil
}

// changeStatus changes a claim's status, in memory and in the API server, unless edit changes nothing. The claim's own
// workflow is not the only writer: the starter writes whether the node has drifted, and a Replacement that it is being
// replaced. A patch writes the list of conditions as a whole, so if somebody has changed the claim since it was read,
// changeStatus reads it again and repeats the edit.
func (o objects) changeStatus(ctx context.Context, claim *karpv1.NodeClaim, edit func(*karpv1.NodeClaim)) error {
	for {
		before := claim.DeepCopy()
		edit(claim)
		if equality.Semantic.DeepEqual(before.Status, claim.Status) {
			return nil
		}
		err := o.Status().Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("write status of NodeClaim %s: %w", before.Name, err)
		}
		fresh, err := o.claim(ctx, workflows.ClaimRef{Name: before.Name, UID: string(before.UID)})
		if err != nil {
			return err
		}
		if fresh == nil {
			return fmt.Errorf("write status of NodeClaim %s: it is gone", before.Name)
		}
		*claim = *fresh
	}
}

// releaseTries is how often releaseClaim tries while others change the list of finalizers at the same time.
const releaseTries = 5

// releaseClaim removes our finalizer from the claim, so that its deletion can complete. It leaves other finalizers alone:
// one that was removed meanwhile must not be written again, which the API server would refuse.
func (o objects) releaseClaim(ctx context.Context, claim *karpv1.NodeClaim) error {
	for try := 1; claim != nil; try++ {
		at := slices.Index(claim.Finalizers, karpv1.TerminationFinalizer)
		if at < 0 {
			return nil
		}
		path := fmt.Sprintf("/metadata/finalizers/%d", at)
		patch, err := json.Marshal([]jsonpatch.Operation{jsonpatch.NewOperation("test", path, karpv1.TerminationFinalizer), jsonpatch.NewOperation("remove", path, nil)})
		if err != nil {
			return fmt.Errorf("take the finalizer off NodeClaim %s: %w", claim.Name, err)
		}
		err = o.Patch(ctx, claim.DeepCopy(), client.RawPatch(types.JSONPatchType, patch))
		if err == nil || !apierrors.IsInvalid(err) || try == releaseTries {
			return ignoreNotFound("take the finalizer off NodeClaim "+claim.Name, err)
		}
		if claim, err = o.claim(ctx, workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}); err != nil {
			return err
		}
	}
	return nil
}

// node reads a node. It returns nil if there is none with that name and UID.
func (o objects) node(ctx context.Context, name, uid string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := o.Get(ctx, types.NamespacedName{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read node %s: %w", name, err)
	case uid != "" && string(node.UID) != uid:
		return nil, nil
	}
	return node, nil
}

// gone checks in the API server that a Node which the mirror does not show is gone, and returns an error if it is not.
func (o objects) gone(ctx context.Context, node *corev1.Node) error {
	found := &corev1.Node{}
	err := o.Get(ctx, client.ObjectKeyFromObject(node), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Node %s: %w", node.Name, err)
	case found.UID != node.UID:
		return nil
	}
	return fmt.Errorf("the view of the cluster lacks Node %s, which exists", node.Name)
}

// podNode is the field by which the API server selects the pods of a node.
const podNode = "spec.nodeName"

// podsOn reads the pods of a node.
func (o objects) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := o.List(ctx, &pods, client.MatchingFields{podNode: node}); err != nil {
		return nil, fmt.Errorf("list pods of Node %s: %w", node, err)
	}
	return pods.Items, nil
}

// ignoreNotFound wraps an error with what was being done. It returns nil if the object is gone.
func ignoreNotFound(doing string, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
