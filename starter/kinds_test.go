package starter

import (
	"fmt"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Disruption writes down new kinds of reason, at most now and then, and nothing that time will take away.
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
		{"nothing keeps anything", 0, nil, false},
		{"what passes is no news", 0, []plan.Cause{plan.CauseQuiet, plan.CauseLeaving}, false},
		{"the first", 0, []plan.Cause{plan.CausePDB}, true},
		{"more of the same", time.Hour, []plan.Cause{plan.CausePDB, plan.CausePDB}, false},
		{"another kind", 0, []plan.Cause{plan.CausePDB, plan.CausePrice}, true},
		{"too soon", time.Minute, []plan.Cause{plan.CausePrice}, false},
		{"later", kindsEvery, []plan.Cause{plan.CausePrice}, true},
	} {
		at = at.Add(step.after)
		if got := seen.changed(of(step.causes...), at); got != step.want {
			t.Errorf("%s: %v", step.reason, got)
		}
	}
}
