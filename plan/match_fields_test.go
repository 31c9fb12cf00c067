package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A node affinity term that names a node does not invalidate the terms beside it: any one of them is enough.
func TestMatchFieldsBesideOtherTerms(t *testing.T) {
	t.Parallel()
	named := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"gone"}}}}
	both := in(zone, "us-east-1c")
	both.MatchFields = named.MatchFields
	tests := []relation{
		{name: "beside another", reason: "the other term can be met", pods: manyPods(1, "a", "1", "1Gi", needs(named, in(zone, "us-east-1b"))), by: zone, want: "b=1"},
		{name: "with expressions", reason: "a term with both needs both", pods: manyPods(1, "a", "1", "1Gi", needs(both, in(zone, "us-east-1b"))), by: zone, want: "b=1"},
		{name: "alone", reason: "no NodePool makes a node of that name", pods: manyPods(1, "a", "1", "1Gi", needs(named)), by: zone, want: "", left: 1, why: "its node affinity uses matchFields, which no NodePool can meet"},
		{name: "only with expressions", reason: "nor one that has labels as well", pods: manyPods(1, "a", "1", "1Gi", needs(both)), by: zone, want: "", left: 1, why: "its node affinity uses matchFields, which no NodePool can meet"},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}
