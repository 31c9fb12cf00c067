package devices

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Gate is the feature gate of dynamic resource allocation.
const Gate = "DynamicResources"

// Needs is what the claims of a pod ask of its node.
type Needs struct {
	// Key is equal for pods of one snapshot whose claims ask the same; empty where they ask nothing.
	Key string
	// alternatives are conditions on the node's labels, one of which has to be met, because claims are allocated there. Nil
	// admits every node.
	alternatives []model.Term
	// own are the claims to allocate that no other pod uses, and shared those that others use as well.
	own, shared []asked
	// together says that the pods that share its claims have to be on one node.
	together bool
	// used are the keys of the claims that several pods use, allocated or not.
	used []string
	// Refusal says why no node would do; empty if one may.
	Refusal string
}

// asked is a claim that is to be allocated.
type asked struct {
	// entry is its name in the pod.
	entry string
	// key is its namespace and name.
	key   string
	claim *resourcev1.ResourceClaim
}

// keyOf identifies what claims ask for.
func keyOf(claims []asked) string {
	var key []byte
	for i := range claims {
		key = model.AppendMessage(key, &claims[i].claim.Spec)
	}
	return string(key)
}

func refused(why string) Needs { return Needs{Key: "refused\x00" + why, Refusal: why} }

// None says that nothing is asked of the node's devices.
func (n *Needs) None() bool { return len(n.own)+len(n.used) == 0 }

// Allocates says that devices are to be allocated.
func (n *Needs) Allocates() bool { return len(n.own)+len(n.shared) > 0 }

// Together says that the pod has to be on one node with the other pods that use its claims.
func (n *Needs) Together() bool { return n.together }

// Shares says that a pod of the one kind and a pod of the other use a claim that is to be allocated.
func (n *Needs) Shares(other *Needs) bool {
	return slices.ContainsFunc(n.shared, func(a asked) bool {
		return slices.ContainsFunc(other.shared, func(b asked) bool { return a.key == b.key })
	})
}

// Restrict combines a pod's own alternatives with those of its claims.
func (n *Needs) Restrict(terms []model.Term) []model.Term {
	if n.alternatives == nil {
		return terms
	}
	return model.Both(terms, n.alternatives)
}

// all returns the claims to allocate.
func (n *Needs) all() []asked { return slices.Concat(n.shared, n.own) }

// key is equal for needs that ask the same. The devices of a pod's own claims depend only on what the claims say.
func (n *Needs) key() string {
	if n.None() && n.alternatives == nil {
		return ""
	}
	var key strings.Builder
	key.WriteString(model.IdOf(n.alternatives))
	for _, one := range n.own {
		fmt.Fprintf(&key, "\x04%s\x00%s", one.entry, model.AppendMessage(nil, &one.claim.Spec))
	}
	for _, used := range n.used {
		key.WriteString("\x05" + used)
	}
	return key.String()
}
