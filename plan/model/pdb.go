package model

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// DisruptionBudget is what planning needs of a PodDisruptionBudget. It is immutable.
type DisruptionBudget struct {
	Namespace, Name string
	// Selector selects the pods of the namespace that the budget covers.
	Selector labels.Selector
	// Allows is status.disruptionsAllowed: how many pods may be evicted now.
	Allows int32
	// UnhealthyGo says that pods that are not Ready may be evicted whatever Allows says: by the policy AlwaysAllow, or
	// because enough pods are healthy.
	UnhealthyGo bool
}

// DisruptionBudget reduces a PodDisruptionBudget.
func (i *Interner) DisruptionBudget(budget *policyv1.PodDisruptionBudget) *DisruptionBudget {
	reduced := &DisruptionBudget{
		Namespace: i.String(budget.Namespace), Name: budget.Name, Selector: Selector(budget.Spec.Selector), Allows: budget.Status.DisruptionsAllowed,
		UnhealthyGo: budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy,
	}
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		reduced.UnhealthyGo = true
	}
	if budget.Status.ObservedGeneration < budget.Generation {
		// The Eviction API refuses evictions until the budget's status has been computed anew.
		reduced.Allows = 0
	}
	return reduced
}

// Selector compiles a label selector. A missing selector selects nothing, and neither does an invalid one, which the API
// server refuses.
func Selector(selector *metav1.LabelSelector) labels.Selector {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return compiled
}

// Anchor returns the key and value of a label that every pod selected by a selector has; both are empty if there is none.
func Anchor(selector labels.Selector) [2]string {
	requirements, _ := selector.Requirements()
	for i := range requirements {
		if value, exact := selector.RequiresExactMatch(requirements[i].Key()); exact && value != "" {
			return [2]string{requirements[i].Key(), value}
		}
	}
	return [2]string{}
}

// String is namespace/name.
func (b *DisruptionBudget) String() string { return b.Namespace + "/" + b.Name }
