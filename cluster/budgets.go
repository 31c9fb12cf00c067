package cluster

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// podBudget is a PodDisruptionBudget in the form of planning.
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

// budgets are the PodDisruptionBudgets.
type budgets struct {
	*shared
	feed *feed[*podBudget]
	// list is what snapshots show of them; nil when one has changed.
	list []*plan.DisruptionBudget
}

func newBudgets(w *watches) *budgets {
	b := &budgets{shared: w.shared}
	b.feed = open(w, policyv1.SchemeGroupVersion, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, nil, reduceBudget, (*podBudget).key, b.budgetChanged)
	return b
}

func (b *budgets) budgetChanged(old, now *podBudget, existed, exists bool) {
	if existed && exists && old.Allows == now.Allows && old.UnhealthyGo == now.UnhealthyGo && old.Selector.String() == now.Selector.String() {
		return // both versions allow the same
	}
	b.list = nil
	b.changed()
	b.publish(Event{Kind: BudgetsChanged})
}

// now returns all budgets, shared by snapshots until one changes. The lock is held.
func (b *budgets) now() []*plan.DisruptionBudget {
	if b.list == nil {
		b.list = make([]*plan.DisruptionBudget, 0, len(b.feed.items))
		for _, budget := range sorted(b.feed.items) {
			b.list = append(b.list, budget.DisruptionBudget)
		}
	}
	return b.list
}
