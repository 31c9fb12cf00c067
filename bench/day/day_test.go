package day_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/day"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/cloud"
)

func common(t *testing.T) []*cloud.InstanceType {
	t.Helper()
	catalogue, err := market.Common(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return catalogue
}

// play runs a day and fails the test if it does not finish.
func play(t *testing.T, o day.Options, c day.Consolidator) day.Result {
	t.Helper()
	result, err := day.Run(t.Context(), o, c)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestConsolidatedDayIsCheaper checks that moving pods saves money.
func TestConsolidatedDayIsCheaper(t *testing.T) {
	t.Parallel()
	o := day.Usual(common(t))
	without, with := play(t, o, day.Empty), play(t, o, tenon.Consolidate)
	t.Logf("only empty nodes go: %+v", without)
	t.Logf("consolidated:        %+v", with)
	if without.PodsMoved != 0 {
		t.Errorf("%d pods moved although only empty nodes go", without.PodsMoved)
	}
	if with.Dollars > 0.85*without.Dollars {
		t.Errorf("the day costs $%.2f, want at most 85 %% of the $%.2f without consolidation", with.Dollars, without.Dollars)
	}
}

// TestDayRepeats checks that the same day has the same outcome: comparisons do not depend on luck.
func TestDayRepeats(t *testing.T) {
	t.Parallel()
	o := day.Usual(common(t))
	o.Length = 8 * time.Hour
	if diff := cmp.Diff(play(t, o, tenon.Consolidate), play(t, o, tenon.Consolidate)); diff != "" {
		t.Errorf("the second of two equal days differs (-first +second):\n%s", diff)
	}
}

// TestNoChurn checks every decision of the day: nodes that have just been launched, or just seen a pod come or go, stay; a
// replacement is not of a type it replaces, and costs less than what it replaces.
func TestNoChurn(t *testing.T) {
	t.Parallel()
	catalogue := common(t)
	price := map[string]float64{}
	for _, it := range catalogue {
		for _, offering := range it.Offerings {
			if offering.CapacityType == karpv1.CapacityTypeOnDemand {
				price[it.Name] = offering.Price
			}
		}
	}
	o := day.Usual(catalogue)
	decisions := 0
	o.Watch = func(at time.Time, q *compare.Question, d compare.Decision) {
		decisions++
		var types []string
		before, after := 0.0, 0.0
		for i := range q.Nodes {
			n := &q.Nodes[i]
			if !slices.Contains(d.Nodes, n.Node.Name) {
				continue
			}
			kind := n.Node.Labels["node.kubernetes.io/instance-type"]
			types, before = append(types, kind), before+price[kind]
			if quiet := at.Sub(n.Claim.Status.LastPodEventTime.Time); quiet < o.ConsolidateAfter {
				t.Errorf("%s: %s goes (%s) %v after it was launched or a pod came or left", at.Format(time.TimeOnly), n.Node.Name, d.Reason, quiet)
			}
		}
		for _, m := range d.Buy {
			after += price[m.Types[0]]
			for _, kind := range m.Types {
				if slices.Contains(types, kind) {
					t.Errorf("%s: a %s may be replaced by another (%v by %v)", at.Format(time.TimeOnly), kind, types, m.Types)
				}
			}
		}
		if len(d.Buy) > 0 && after >= before {
			t.Errorf("%s: %v for $%.4f are replaced by what costs $%.4f", at.Format(time.TimeOnly), types, before, after)
		}
	}
	play(t, o, tenon.Consolidate)
	if decisions == 0 {
		t.Error("nothing was decided all day")
	}
}

// TestStillClusterRests checks that consolidation ends by itself in a cluster that does not change.
func TestStillClusterRests(t *testing.T) {
	t.Parallel()
	o := day.Usual(common(t))
	o.Length = 10 * time.Hour
	last := time.Time{}
	o.Still = 8 * time.Hour
	o.Watch = func(at time.Time, _ *compare.Question, _ compare.Decision) { last = at }
	play(t, o, tenon.Consolidate)
	if rest := last.Sub(day.Start.Add(o.Still)); rest > 30*time.Minute {
		t.Errorf("nodes are still taken away %v after the last pod came or went", rest)
	}
}

// TestSpotDay checks that pools run dry on a day with spot, that it is cheaper nevertheless, and that it repeats.
func TestSpotDay(t *testing.T) {
	t.Parallel()
	o := day.Usual(common(t))
	onDemand := play(t, o, tenon.Consolidate)
	o.Spot = true
	spot := play(t, o, tenon.Consolidate)
	if onDemand.Interrupted > 0 {
		t.Errorf("%d nodes were taken back on a day without spot", onDemand.Interrupted)
	}
	if spot.Interrupted == 0 || spot.PodsInterrupted < spot.Interrupted {
		t.Errorf("%d nodes with %d pods were taken back, want some", spot.Interrupted, spot.PodsInterrupted)
	}
	if spot.LargestLoss <= 0 || spot.LargestLoss > 1 {
		t.Errorf("the largest part of a workload that was lost at once is %.2f", spot.LargestLoss)
	}
	if spot.Dollars > 0.8*onDemand.Dollars {
		t.Errorf("the day costs $%.2f with spot and $%.2f without", spot.Dollars, onDemand.Dollars)
	}
	if diff := cmp.Diff(spot, play(t, o, tenon.Consolidate)); diff != "" {
		t.Errorf("the second of two equal days differs (-first +second):\n%s", diff)
	}
}
