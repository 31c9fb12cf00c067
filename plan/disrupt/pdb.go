package disrupt

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// budgetIndex finds the PodDisruptionBudgets of pods. Pods with the same labels have the same budgets.
type budgetIndex struct {
	// labelled are budgets by namespace, key and value of a label (model.Anchor); those without such a label have an empty
	// key and value.
	labelled map[[3]string][]*model.DisruptionBudget
	found    map[*model.Labels][]*model.DisruptionBudget
}

func newBudgetIndex(budgets []*model.DisruptionBudget) *budgetIndex {
	index := &budgetIndex{labelled: map[[3]string][]*model.DisruptionBudget{}, found: map[*model.Labels][]*model.DisruptionBudget{}}
	for _, budget := range budgets {
		anchor := model.Anchor(budget.Selector)
		at := [3]string{budget.Namespace, anchor[0], anchor[1]}
		index.labelled[at] = append(index.labelled[at], budget)
	}
	return index
}

// of returns the budgets that select a pod.
func (x *budgetIndex) of(pod *model.Pod) []*model.DisruptionBudget {
	if len(x.labelled) == 0 {
		return nil
	}
	if found, known := x.found[pod.Labels]; known {
		return found
	}
	var found []*model.DisruptionBudget
	set := labels.Set(pod.Labels.Set)
	add := func(budgets []*model.DisruptionBudget) {
		for _, budget := range budgets {
			if budget.Selector.Matches(set) {
				found = append(found, budget)
			}
		}
	}
	add(x.labelled[[3]string{pod.Namespace}])
	for key, value := range set {
		add(x.labelled[[3]string{pod.Namespace, key, value}])
	}
	slices.SortFunc(found, func(a, b *model.DisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	x.found[pod.Labels] = found
	return found
}

// disruptedTaint keeps new pods off a node that is being removed. Pods that tolerate it are not evicted.
var disruptedTaint = corev1.Taint{Key: karpv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}

// keeps says which budget would refuse the eviction of a pod, and why; empty if none would. The Eviction API refuses every
// pod that two budgets select, even one that is not Ready.
func (x *budgetIndex) keeps(pod *model.Pod) (why string) {
	budgets := x.of(pod)
	if len(budgets) == 0 || pod.Terminal || pod.Terminating() || lifecycle.Stays((model.DrainPod{Pod: pod}), disruptedTaint) {
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
