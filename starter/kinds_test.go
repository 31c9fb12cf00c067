package starter

import (
	"fmt"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Disruption writes down new kinds of reason, at most once every kindsEvery, and none that pass by themselves.
func TestKindsChanged(t *testing.T) {
	t.Parallel()
	of := func(causes ...plan.Cause) plan.Disruption {
		var d plan.Disruption
		for i, cause := range causes {
			d.Verdicts = append(d.Verdicts, plan.Verdict{Node: fmt.Sprint(i), Reason: karpv1.DisruptionReasonUnderutilized, Cause: cause, Message: "x"})
		}
		return d
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var seen kinds
	for _, step := range []struct {
		reason string
		after  time.Duration
		causes []plan.Cause
		want   bool
	}{
		{reason: "nothing keeps anything", after: 0, want: false},
		{reason: "what passes is no news", after: 0, causes: []plan.Cause{plan.CauseQuiet, plan.CauseLeaving}, want: false},
		{reason: "the first", after: 0, causes: []plan.Cause{plan.CausePDB}, want: true},
		{reason: "more of the same", after: time.Hour, causes: []plan.Cause{plan.CausePDB, plan.CausePDB}, want: false},
		{reason: "another kind", after: 0, causes: []plan.Cause{plan.CausePDB, plan.CausePrice}, want: true},
		{reason: "too soon", after: time.Minute, causes: []plan.Cause{plan.CausePrice}, want: false},
		{reason: "later", after: kindsEvery, causes: []plan.Cause{plan.CausePrice}, want: true},
	} {
		at = at.Add(step.after)
		if got := seen.changed(of(step.causes...), at); got != step.want {
			t.Errorf("%s: %v", step.reason, got)
		}
	}
}
