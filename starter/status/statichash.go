package status

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// staticHash is one of the hashes that tell whether a claim is still what its NodePool or its node class would make:
// the keys of its annotations, and the current version of the hash.
type staticHash struct {
	key, versionKey, version string
}

func nodePoolHash() staticHash {
	return staticHash{karpv1.NodePoolHashAnnotationKey, karpv1.NodePoolHashVersionAnnotationKey, karpv1.NodePoolHashVersion}
}

func nodeClassHash(kind cloud.Kind) staticHash {
	return staticHash{kind.HashKey, kind.HashVersionKey, kind.HashVersion}
}

// put sets the hash and its version on an object in memory.
func (h staticHash) put(object kube.Object, hash string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[h.key], annotations[h.versionKey] = hash, h.version
	object.SetAnnotations(annotations)
}

// renew writes the current hash to the claims that carry one of another version, which cannot be compared: they count
// as made from their pool or class as it is now, unless they are known to have drifted. Those keep their hash and get
// only the new version.
func (h staticHash) renew(ctx context.Context, client kube.Client, claims []*karpv1.NodeClaim, hash string) error {
	for _, claim := range claims {
		if version := claim.Annotations[h.versionKey]; version == "" || version == h.version {
			continue
		}
		renewed := claim.DeepCopy()
		err := patch(ctx, client, renewed, func() {
			if renewed.IsTrue(karpv1.ConditionTypeDrifted) {
				renewed.Annotations[h.versionKey] = h.version
				return
			}
			h.put(renewed, hash)
		})
		if kube.IgnoreNotFound(err) != nil {
			return fmt.Errorf("hash of claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// patch changes an object in memory and in the API server, unless there is nothing to change. It fails with a conflict
// if the API server has a newer version. Afterwards the object is what the API server has.
func patch[T kube.Object](ctx context.Context, client kube.Client, object T, change func()) error {
	before := object.DeepCopyObject().(T)
	change()
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return client.Patch(ctx, object, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
}
