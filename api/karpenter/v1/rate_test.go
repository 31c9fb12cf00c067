package v1

import (
	"testing"
	"time"
)

// TestDisruptionRate reads rates, and counts what they allow of ten nodes.
func TestDisruptionRate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		text   string
		within time.Duration
		most   int
		wrong  bool
	}{
		{reason: "a share is rounded up, as in budgets", text: "25%/10m", within: 10 * time.Minute, most: 3},
		{reason: "a number", text: "5/1h", within: time.Hour, most: 5},
		{reason: "none at all", text: "0/1h30m", within: 90 * time.Minute},
		{reason: "all", text: "100%/90s", within: 90 * time.Second, most: 10},
		{reason: "more than there are", text: "101%/10m", wrong: true},
		{reason: "a share of a node", text: "1.5/10m", wrong: true},
		{reason: "fewer than none", text: "-1/10m", wrong: true},
		{reason: "no time", text: "30%", wrong: true},
		{reason: "a time without a unit", text: "30%/10", wrong: true},
		{reason: "no time at all", text: "30%/0s", wrong: true},
		{reason: "longer than anybody remembers", text: "1/48h", wrong: true},
		{reason: "nothing", text: "", wrong: true},
	} {
		pool := NodePool{}
		pool.Annotations = map[string]string{DisruptionRateAnnotationKey: test.text}
		rate, err := pool.DisruptionRate()
		if test.wrong {
			if err == nil {
				t.Errorf("%s: %q is read as %v", test.reason, test.text, rate)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		if rate.Within != test.within || rate.Most(10) != test.most {
			t.Errorf("%s: %d of ten nodes within %s; want %d within %s", test.reason, rate.Most(10), rate.Within, test.most, test.within)
		}
	}
	if rate, err := (&NodePool{}).DisruptionRate(); rate != nil || err != nil {
		t.Errorf("a NodePool without the annotation has the rate %v, %v", rate, err)
	}
}
