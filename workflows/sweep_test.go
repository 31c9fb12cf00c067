package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSweepsHandOnWhatTheyKnowOfLeftovers runs sweeps as the Schedule does, which gives each the result of the last one.
func TestSweepsHandOnWhatTheyKnowOfLeftovers(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	known := &Leftovers{Asked: asked, Known: []KnownLeftover{{Kind: "launch template", Name: "a", Since: asked.Add(-time.Hour), Tried: true}}}
	for reason, test := range map[string]struct {
		last any // the result of the last sweep
		want *Leftovers
	}{
		"the first sweep knows of none":               {nil, nil},
		"the next one knows what the last one knew":   {SweepResult{Claims: 3, Leftovers: known}, known},
		"an older build said nothing of leftovers":    {SweepResult{Claims: 3}, nil},
		"a result that cannot be read stops no sweep": {"text", nil},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			env := environment(t, &fakes{})
			if test.last != nil {
				env.SetLastCompletionResult(test.last)
			}
			var got *Leftovers
			SweepActivity.register(env, func(_ context.Context, in SweepInput) (SweepResult, error) {
				got = in.Leftovers
				return SweepResult{Leftovers: &Leftovers{Asked: asked.Add(time.Minute)}}, nil
			})
			env.ExecuteWorkflow(Sweep, SweepInput{Cluster: "c"})
			var result SweepResult
			if err := env.GetWorkflowResult(&result); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the activity gets (-want +got):\n%s", diff)
			}
			if result.Leftovers == nil || !result.Leftovers.Asked.Equal(asked.Add(time.Minute)) {
				t.Errorf("the result says %+v", result.Leftovers)
			}
		})
	}
}
