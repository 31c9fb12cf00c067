package model

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// DisruptionBudget is what planning needs of a PodDisruptionBudget. It is immutable.
type DisruptionBudget struct {
	Namespace, Name string
	// Selector says which pods of the namespace the budget is about.
	Selector labels.Selector
	// Allows is status.disruptionsAllowed: how many pods may be evicted now.
	Allows int32
	// UnhealthyGo says that pods that are not Ready may be evicted whatever Allows says: always, by the policy
	// AlwaysAllow, or because as many pods are healthy as there have to be.
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
		// The Eviction API waits for the budget to be reckoned anew.
		reduced.Allows = 0
	}
	return reduced
}

// Selector compiles a label selector. One that is not there selects nothing, nor does one that cannot be read: the API
// server refuses it.
func Selector(selector *metav1.LabelSelector) labels.Selector {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return compiled
}

// Anchor is a label that every pod has which a selector selects, by key and value; both empty where there is none such.
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
