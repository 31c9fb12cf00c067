package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// Target identifies what new nodes of a pool are made from, so that a change which may make nodes drift changes it: the
// template, with its requirements, the static part of the node class, and the images, security groups, subnets and
// reservations that the class selects. It is empty while that is not known: the class is nil or not ready, or has changed
// since it was looked at. What the cloud sells is no part of it.
func Target(pool *karpv1.NodePool, class cloud.NodeClass, kind cloud.Kind) string {
	hash, err := pool.Hash()
	if err != nil || class == nil {
		return ""
	}
	ready := class.Condition(karpv1.ConditionTypeReady)
	if !class.IsTrue(karpv1.ConditionTypeReady) || ready.ObservedGeneration < class.GetGeneration() {
		return ""
	}
	requirements, err := json.Marshal(pool.Spec.Template.Spec.Requirements)
	if err != nil {
		return ""
	}
	selected := slices.Clone(class.Selected())
	for _, image := range class.Images() {
		selected = append(selected, image.ID)
	}
	slices.Sort(selected)
	key := model.AppendString(nil, hash, string(requirements), class.GetName(), class.GetAnnotations()[kind.HashKey])
	sum := sha256.Sum256(model.AppendString(key, selected...))
	return hex.EncodeToString(sum[:6])
}
