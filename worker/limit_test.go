package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMemoryIsDividedByTheLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit int64
		want  memory
	}{
		"no limit":                  {want: memory{workflows: 10_000}},
		"of 2,000 nodes":            {limit: 350 << 20, want: memory{heap: 247_988_224, workflows: 537}},
		"of the chart":              {limit: 512 << 20, want: memory{heap: 409_364_070, workflows: 786}},
		"of 10,000 nodes":           {limit: 1 << 30, want: memory{heap: 919_391_436, workflows: 1572}},
		"as little as there may be": {limit: 64 << 20, want: memory{heap: 32 << 20, workflows: 500}},
		"more than can be used":     {limit: 64 << 30, want: memory{heap: 65_182_839_603, workflows: 10_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, memoryWithin(test.limit), cmp.AllowUnexported(memory{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
