package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/bench/workload"
)

// rounds is how many random questions are asked.
const rounds = 300

// Both planners place the same pods, and Tenon's plan is not dearer. Pods of one Deployment are alike, so the test compares
// how many of each get a node. What may differ, and why, is in DIFFERENCES.md and exceptions_test.go.
func TestSamePodsAreSchedulable(t *testing.T) {
	t.Parallel()
	catalogue, err := market.EC2(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	excused := map[string]int{}
	saved, compared := 0.0, 0
	for seed := range uint64(rounds) {
		q := workload.Random(seed, catalogue, someFeatures(seed)...)
		ours := tenon.Plan(q)
		theirs, err := karpenter.Plan(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q.Name, err)
		}
		for _, wrong := range append(q.Missing(ours), q.Missing(theirs)...) {
			t.Errorf("%s: %s", q.Name, wrong)
		}
		c := comparison{question: q, ours: ours, theirs: theirs, differences: differences(q, ours, theirs)}
		for _, d := range c.differences {
			if why := c.excuse(d); why != "" {
				excused[why]++
				continue
			}
			t.Errorf("%s: %s", q.Name, d)
		}
		if len(c.differences) > 0 || theirs.Cost() == 0 && ours.Cost() == 0 {
			continue
		}
		if why := c.dearer(); why == unexplained {
			t.Errorf("%s: Tenon's plan costs $%.4f/h, Karpenter's $%.4f/h:\n%s---\n%s", q.Name, ours.Cost(), theirs.Cost(), ours.Summary(), theirs.Summary())
		} else if why != "" {
			excused[why]++
		}
		if theirs.Cost() > 0 {
			saved += 1 - ours.Cost()/theirs.Cost()
			compared++
		}
	}
	t.Logf("where both place the same pods, Tenon's plan is %.1f %% cheaper on average (%d questions)", 100*saved/float64(compared), compared)
	for _, why := range slices.Sorted(maps.Keys(excused)) {
		t.Logf("%4d × %s", excused[why], why)
	}
}

// someFeatures returns one to four of the features.
func someFeatures(seed uint64) []workload.Feature {
	r := rand.New(rand.NewPCG(seed, 3))
	features := slices.Clone(workload.Features)
	r.Shuffle(len(features), func(i, k int) { features[i], features[k] = features[k], features[i] })
	return features[:1+r.IntN(4)]
}

// difference is a Deployment of which the planners place different numbers of pods.
type difference struct {
	question     *compare.Question
	app          string
	ours, theirs int
	// ourReason and theirReason say why a pod of it was left unplaced.
	ourReason, theirReason string
}

func (d difference) String() string {
	return fmt.Sprintf("Tenon places %d of %s and Karpenter %d;\n\tTenon left one because: %s\n\tKarpenter because: %s", d.ours, d.app, d.theirs, d.ourReason, d.theirReason)
}

func differences(q *compare.Question, ours, theirs compare.Answer) []difference {
	byApp := map[string]*difference{}
	for _, pod := range q.Pods {
		app := pod.Namespace + "/" + pod.Labels[workload.AppLabel]
		d := byApp[app]
		if d == nil {
			d = &difference{question: q, app: app}
			byApp[app] = d
		}
		if reason, left := ours.Unplaced[compare.Key(pod)]; left {
			d.ourReason = reason
		} else {
			d.ours++
		}
		if reason, left := theirs.Unplaced[compare.Key(pod)]; left {
			d.theirReason = reason
		} else {
			d.theirs++
		}
	}
	var different []difference
	for _, app := range slices.Sorted(maps.Keys(byApp)) {
		if d := byApp[app]; d.ours != d.theirs {
			different = append(different, *d)
		}
	}
	return different
}
