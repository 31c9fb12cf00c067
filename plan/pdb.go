package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
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

	// key and value are a label that every pod has which the budget selects; empty where there is none such.
	key, value string
}

// DisruptionBudget reduces a PodDisruptionBudget. One whose selector cannot be read selects nothing: the API server
// refuses such a selector.
func (i *Interner) DisruptionBudget(budget *policyv1.PodDisruptionBudget) *DisruptionBudget {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	reduced := &DisruptionBudget{
		Namespace: i.String(budget.Namespace), Name: budget.Name, Selector: selector, Allows: budget.Status.DisruptionsAllowed,
		UnhealthyGo: budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy,
	}
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		reduced.UnhealthyGo = true
	}
	if budget.Status.ObservedGeneration < budget.Generation {
		// The Eviction API waits for the budget to be reckoned anew.
		reduced.Allows = 0
	}
	if spec := budget.Spec.Selector; spec != nil && len(spec.MatchLabels) > 0 {
		reduced.key = i.String(slices.Min(slices.Collect(maps.Keys(spec.MatchLabels))))
		reduced.value = i.String(spec.MatchLabels[reduced.key])
	}
	return reduced
}

// Same says that two versions of a budget decide the same.
func (b *DisruptionBudget) Same(other *DisruptionBudget) bool {
	return b.Allows == other.Allows && b.UnhealthyGo == other.UnhealthyGo && b.Selector.String() == other.Selector.String()
}

// String is namespace/name.
func (b *DisruptionBudget) String() string { return b.Namespace + "/" + b.Name }

// budgetIndex finds the budgets of pods. Pods that look the same have the same.
type budgetIndex struct {
	// labelled are budgets by namespace, key and value of a label; others those without such, by namespace.
	labelled map[[3]string][]*DisruptionBudget
	others   map[string][]*DisruptionBudget
	found    map[*Labels][]*DisruptionBudget
}

func newBudgetIndex(budgets []*DisruptionBudget) *budgetIndex {
	index := &budgetIndex{labelled: map[[3]string][]*DisruptionBudget{}, others: map[string][]*DisruptionBudget{}, found: map[*Labels][]*DisruptionBudget{}}
	for _, budget := range budgets {
		if budget.key == "" {
			index.others[budget.Namespace] = append(index.others[budget.Namespace], budget)
			continue
		}
		at := [3]string{budget.Namespace, budget.key, budget.value}
		index.labelled[at] = append(index.labelled[at], budget)
	}
	return index
}

// of are the budgets that select a pod.
func (x *budgetIndex) of(pod *Pod) []*DisruptionBudget {
	if len(x.labelled) == 0 && len(x.others) == 0 {
		return nil
	}
	if found, known := x.found[pod.Labels]; known {
		return found
	}
	var found []*DisruptionBudget
	set := labels.Set(pod.Labels.Set)
	add := func(budgets []*DisruptionBudget) {
		for _, budget := range budgets {
			if budget.Selector.Matches(set) {
				found = append(found, budget)
			}
		}
	}
	add(x.others[pod.Namespace])
	for key, value := range set {
		add(x.labelled[[3]string{pod.Namespace, key, value}])
	}
	slices.SortFunc(found, func(a, b *DisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	x.found[pod.Labels] = found
	return found
}

// disruptedTaint is what keeps new pods off a node that is going. Pods that tolerate it are not evicted.
var disruptedTaint = corev1.Taint{Key: karpv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}

// keeps says which budget would refuse the eviction of a pod, and why; nothing where none would. The Eviction API
// refuses every pod that two budgets select, also one that is not Ready.
func (x *budgetIndex) keeps(pod *Pod) (why string) {
	budgets := x.of(pod)
	if len(budgets) == 0 || pod.Terminal || pod.Terminating() || (DrainPod{Pod: pod}).stays(disruptedTaint) {
		return ""
	}
	if len(budgets) > 1 {
		return fmt.Sprintf("pod %s is selected by more than one PodDisruptionBudget (%s and %s), and so cannot be evicted", pod.Key(), budgets[0].Name, budgets[1].Name)
	}
	if budget := budgets[0]; budget.Allows <= 0 && (pod.Ready || !budget.UnhealthyGo) {
		return fmt.Sprintf("PodDisruptionBudget %s allows no eviction of pod %s", budget, pod.Key())
	}
	return ""
}
