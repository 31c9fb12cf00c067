package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

func TestProtectionOfNodes(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	joined := born.Add(time.Minute)
	for _, row := range []struct {
		why, onNode, onClaim string
		protects             bool
		until                time.Time
	}{
		{why: "nobody asks", onNode: "", onClaim: "", protects: false, until: time.Time{}},
		{why: "true has no end", onNode: "true", onClaim: "", protects: true, until: time.Time{}},
		{why: "the claim asks as well as the Node may", onNode: "", onClaim: "true", protects: true, until: time.Time{}},
		{why: "a duration counts from the Node's creation", onNode: "4h", onClaim: "", protects: true, until: joined.Add(4 * time.Hour)},
		{why: "on a claim it counts from the claim's", onNode: "", onClaim: "4h", protects: true, until: born.Add(4 * time.Hour)},
		{why: "the longer of the two holds", onNode: "1h", onClaim: "4h", protects: true, until: born.Add(4 * time.Hour)},
		{why: "nothing is longer than for ever", onNode: "true", onClaim: "4h", protects: true, until: time.Time{}},
		{why: "for ever on the claim as well", onNode: "4h", onClaim: "true", protects: true, until: time.Time{}},
		{why: "what is no duration is ignored", onNode: "soon", onClaim: "", protects: false, until: time.Time{}},
		{why: "and does not undo the other part", onNode: "soon", onClaim: "4h", protects: true, until: born.Add(4 * time.Hour)},
		{why: "a duration has to be positive", onNode: "-4h", onClaim: "", protects: false, until: time.Time{}},
		{why: "false protects nothing", onNode: "false", onClaim: "", protects: false, until: time.Time{}},
	} {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			reduce := new(model.Interner)
			annotated := func(value string, at time.Time) metav1.ObjectMeta {
				meta := metav1.ObjectMeta{Name: "n", CreationTimestamp: metav1.NewTime(at)}
				if value != "" {
					meta.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: value}
				}
				return meta
			}
			node := reduce.Claim(&karpv1.NodeClaim{ObjectMeta: annotated(row.onClaim, born)}).
				Join(reduce.Node(&corev1.Node{ObjectMeta: annotated(row.onNode, joined)}))
			if node.DoNotDisrupt != row.protects || !node.DoNotDisruptUntil.Equal(row.until) {
				t.Errorf("got %v until %v, want %v until %v", node.DoNotDisrupt, node.DoNotDisruptUntil, row.protects, row.until)
			}
			if row.protects != node.Undisruptable(joined) {
				t.Errorf("it is %v that the node asks not to be disrupted as it joins", !row.protects)
			}
			if late := joined.Add(100 * time.Hour); node.Undisruptable(late) != (row.protects && row.until.IsZero()) {
				t.Errorf("it is %v that the node asks not to be disrupted days later", node.Undisruptable(late))
			}
		})
	}
}

// TestOldAnnotationsOfNodes checks that karpenter.sh/do-not-consolidate, which Karpenter had before v1beta1, still protects.
func TestOldAnnotationsOfNodes(t *testing.T) {
	t.Parallel()
	old, current := karpv1.DoNotConsolidateAnnotationKey, karpv1.DoNotDisruptAnnotationKey
	for reason, row := range map[string]struct {
		onNode, onClaim map[string]string
		protects        bool
		by              string
	}{
		"on the Node":                       {onNode: map[string]string{old: "true"}, protects: true, by: old},
		"on the claim":                      {onClaim: map[string]string{old: "true"}, protects: true, by: old},
		"it knew no durations":              {onNode: map[string]string{old: "4h"}},
		"false protects nothing":            {onNode: map[string]string{old: "false"}},
		"the newer name decides":            {onNode: map[string]string{old: "true", current: "false"}},
		"and is the one that people read":   {onNode: map[string]string{old: "true", current: "true"}, protects: true},
		"an older claim under a newer Node": {onNode: map[string]string{current: "4h"}, onClaim: map[string]string{old: "true"}, protects: true, by: old},
		"do-not-evict is for pods":          {onNode: map[string]string{karpv1.DoNotEvictAnnotationKey: "true"}},
	} {
		reduce := new(model.Interner)
		node := reduce.Claim(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: row.onClaim}}).
			Join(reduce.Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: row.onNode}}))
		if node.DoNotDisrupt != row.protects || node.Protection != row.by || !node.DoNotDisruptUntil.IsZero() {
			t.Errorf("%s: protects %v by %q until %v, want %v by %q", reason, node.DoNotDisrupt, node.Protection, node.DoNotDisruptUntil, row.protects, row.by)
		}
	}
}

func TestProtectionSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"soon", "0s", "-1h", "yes", "4"} {
		if protects, _, err := model.Protection(value); protects || err == nil {
			t.Errorf("%q protects %v, and is wrong for %v", value, protects, err)
		}
	}
}
