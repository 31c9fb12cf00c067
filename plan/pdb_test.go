package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestBudgetsOfPods checks that a node is kept exactly if one of its pods is selected by a PodDisruptionBudget that
// allows nothing, or by two budgets, compared with matching selectors of any shape one by one.
func TestBudgetsOfPods(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := new(plan.Interner)
		word := rapid.SampledFrom([]string{"a", "b", "c"})
		namespace := rapid.SampledFrom([]string{"one", "two"})
		set := rapid.MapOfN(word, word, 0, 3)
		var budgets []*policyv1.PodDisruptionBudget
		for i := range rapid.IntRange(0, 5).Draw(t, "budgets") {
			selector := &metav1.LabelSelector{MatchLabels: set.Draw(t, "match")}
			if rapid.Bool().Draw(t, "expression") {
				selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: word.Draw(t, "key"),
					Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}).Draw(t, "operator")}}
			}
			budgets = append(budgets, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i), Namespace: namespace.Draw(t, "namespace")},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(rapid.IntRange(0, 1).Draw(t, "allows"))}})
		}
		var pods []*corev1.Pod
		for i := range rapid.IntRange(1, 4).Draw(t, "pods") {
			pods = append(pods, newPod(fmt.Sprint("p", i), "10m", "1Mi", ready(true), func(pod *corev1.Pod) {
				pod.Namespace, pod.Labels = namespace.Draw(t, "of"), set.Draw(t, "labels")
			}))
		}
		kept := slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
			found, refuses := 0, false
			for _, budget := range budgets {
				selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
				if err != nil {
					t.Fatal(err)
				}
				if budget.Namespace == pod.Namespace && selector.Matches(labelSet(pod.Labels)) {
					found++
					refuses = refuses || budget.Status.DisruptionsAllowed == 0
				}
			}
			return refuses || found > 1
		})
		w := world{pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}, nodes: []*plan.Node{existing("n", "m6i.large", hasDrifted(0), running(in, pods...))}}
		input := w.input()
		for _, budget := range budgets {
			input.Snapshot.DisruptionBudgets = append(input.Snapshot.DisruptionBudgets, in.DisruptionBudget(budget))
		}
		d := plan.Disrupt(input)
		v := verdictsOf(d, "claim-n")[karpv1.DisruptionReasonDrifted]
		if kept != (v.Cause == plan.CausePDB) {
			t.Fatalf("kept %v: %+v %+v", kept, v, d.Commands)
		}
		if kept && !strings.Contains(v.Message, "PodDisruptionBudget") {
			t.Errorf("%+v", v)
		}
	})
}

// labelSet is a pod's labels as selectors see them.
type labelSet map[string]string

func (s labelSet) Has(key string) bool                   { _, ok := s[key]; return ok }
func (s labelSet) Get(key string) string                 { return s[key] }
func (s labelSet) Lookup(key string) (v string, ok bool) { v, ok = s[key]; return v, ok }
