package cluster

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// podBudget is a PodDisruptionBudget as planning sees it.
type podBudget struct{ *plan.DisruptionBudget }

func (b *podBudget) key() string { return b.Namespace + "/" + b.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (b *podBudget) GetObjectMeta() metav1.Object { return named(b.Namespace, b.Name) }

func reduceBudget(interner *plan.Interner, obj any) (*podBudget, error) {
	budget, ok := obj.(*policyv1.PodDisruptionBudget)
	if !ok {
		return nil, unexpected(budget, obj)
	}
	return &podBudget{interner.DisruptionBudget(budget)}, nil
}

func (m *Mirror) budgetChanged(old, now *podBudget, existed, exists bool) {
	if existed && exists && old.Allows == now.Allows && old.UnhealthyGo == now.UnhealthyGo && old.Selector.String() == now.Selector.String() {
		return // both versions decide the same
	}
	m.budgetList = nil
	m.changed()
	m.events.publish(Event{Kind: BudgetsChanged})
}

// budgetsNow are all budgets, shared by snapshots until one changes. The lock is held.
func (m *Mirror) budgetsNow() []*plan.DisruptionBudget {
	if m.budgetList == nil {
		m.budgetList = make([]*plan.DisruptionBudget, 0, len(m.budgets.items))
		for _, budget := range sorted(m.budgets.items) {
			m.budgetList = append(m.budgetList, budget.DisruptionBudget)
		}
	}
	return m.budgetList
}
