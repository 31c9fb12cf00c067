package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestNillableDurationKeepsItsText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want *time.Duration
	}{
		{`"Never"`, nil},
		{`"720h"`, new(720 * time.Hour)},
		{`"90m"`, new(90 * time.Minute)},
		{`"0s"`, new(time.Duration(0))},
	} {
		var d v1.NillableDuration
		if err := json.Unmarshal([]byte(tc.text), &d); err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if d.IsNever() != (tc.want == nil) || tc.want != nil && *d.Duration != *tc.want {
			t.Errorf("%s: read as %s", tc.text, d)
		}
		back, err := json.Marshal(d)
		if err != nil || string(back) != tc.text {
			t.Errorf("%s: written back as %s, error %v", tc.text, back, err)
		}
	}
	for _, text := range []string{`"soon"`, `""`, `720`} {
		var d v1.NillableDuration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s: read as %s, want an error", text, d)
		}
	}
}
