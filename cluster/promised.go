package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// promised is a NodeClaim in the API's form and in that of planning.
type promised struct {
	claim *karpv1.NodeClaim
	plan  *plan.Node
}

func (p *promised) key() string { return p.claim.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (p *promised) GetObjectMeta() metav1.Object { return p.claim }

// openClaims prepares the watch of NodeClaims. Their store subscribes to it (claims.go).
func openClaims(w *watches) *feed[*promised] {
	return open(w, karpv1.SchemeGroupVersion, "nodeclaims", &karpv1.NodeClaim{}, nil, reduceClaim, (*promised).key, nil)
}

// reduceClaim keeps a NodeClaim whole. Hundreds of claims list the same sixty instance types, so it shares those
// strings.
func reduceClaim(interner *plan.Interner, obj any) (*promised, error) {
	claim, ok := obj.(*karpv1.NodeClaim)
	if !ok {
		return nil, unexpected(claim, obj)
	}
	claim.ManagedFields = nil
	for i := range claim.Spec.Requirements {
		requirement := &claim.Spec.Requirements[i]
		requirement.Key = interner.String(requirement.Key)
		values := make([]string, len(requirement.Values)) // the decoder's slice has up to twice the capacity
		for v, value := range requirement.Values {
			values[v] = interner.String(value)
		}
		if len(values) > 0 {
			requirement.Values = values
		}
	}
	reduced := &promised{claim: claim, plan: interner.Claim(claim)}
	if len(reduced.plan.Labels) == len(claim.Labels) { // no requirement has added one
		claim.Labels = reduced.plan.Labels
	}
	return reduced, nil
}

// claimObject is a NodeClaim in the API's form; nil for none.
func claimObject(claim *promised) *karpv1.NodeClaim {
	if claim == nil {
		return nil
	}
	return claim.claim
}

// providerID is the provider id in a claim's status; empty for no claim.
func providerID(claim *promised) string {
	if claim == nil {
		return ""
	}
	return claim.claim.Status.ProviderID
}

// initialized says that a claim's node is initialized.
func initialized(claim *promised) bool {
	return claim != nil && claim.claim.IsTrue(karpv1.ConditionTypeInitialized)
}

// launchedAt is when a claim's machine was launched; zero if it was not.
func launchedAt(claim *promised) time.Time {
	if launched := claim.claim.Condition(karpv1.ConditionTypeLaunched); launched != nil {
		return launched.LastTransitionTime.Time
	}
	return time.Time{}
}

// poolOf is the name of a claim's NodePool.
func poolOf(claim *promised) string { return claim.claim.Labels[karpv1.NodePoolLabelKey] }
