package starter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// TestAnOfferingWhoseMachinesDoNotComeIsLeftAlone has one overdue machine, and then another one.
func TestAnOfferingWhoseMachinesDoNotComeIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	now := time.Now()
	late := func(names ...string) {
		e.mirror.overdue = nil
		for _, name := range names {
			claim := interruptedClaim(name, "i-"+name)
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)})
			e.mirror.overdue = append(e.mirror.overdue, claim)
		}
	}
	spot := cloud.OfferingKey{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
	for _, step := range []struct {
		reason  string
		overdue []string
		after   time.Duration
		events  []string
		shunned []cloud.OfferingKey
	}{
		{reason: "one may be an accident", overdue: []string{"a"}, after: 0, events: []string{eventOverdue}},
		{reason: "it is told once", overdue: []string{"a"}, after: time.Minute},
		{reason: "two are none", overdue: []string{"a", "b"}, after: 10 * time.Minute, events: []string{eventOverdue}, shunned: []cloud.OfferingKey{spot}},
		{reason: "one that was long ago says nothing", overdue: []string{"c"}, after: time.Hour, events: []string{eventOverdue}},
	} {
		e.cloud.shunned = nil
		late(step.overdue...)
		e.edges.overdue.tell(t.Context(), now.Add(step.after))
		if diff := cmp.Diff(step.events, e.told()); diff != "" {
			t.Errorf("%s: Events (-want +got):\n%s", step.reason, diff)
		}
		if diff := cmp.Diff(step.shunned, e.cloud.shunned); diff != "" {
			t.Errorf("%s: left alone (-want +got):\n%s", step.reason, diff)
		}
	}
}
