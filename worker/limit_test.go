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
		"no limit":              {want: memory{workflows: 10_000}},
		"of a container of 1Gi": {limit: 1 << 30, want: memory{heap: 966_367_641, workflows: 7864}},
		"of the chart":          {limit: 512 << 20, want: memory{heap: 483_183_820, workflows: 3932}},
		"of a small one":        {limit: 64 << 20, want: memory{heap: 60_397_977, workflows: 500}},
		"of a large one":        {limit: 8 << 30, want: memory{heap: 7_730_941_132, workflows: 10_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, memoryWithin(test.limit), cmp.AllowUnexported(memory{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
