package plan_test

import (
	"strings"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestRates checks the limits on how many nodes begin to leave within a time. There are six empty nodes of NodePool p
// and two of NodePool q.
func TestRates(t *testing.T) {
	t.Parallel()
	rate := func(text string) *karpv1.DisruptionRate {
		parsed, err := karpv1.ParseDisruptionRate(text)
		if err != nil {
			t.Fatal(err)
		}
		return &parsed
	}
	ago := func(nodes int, ago time.Duration) karpv1.Begun { return karpv1.Begun{Nodes: nodes, At: now.Add(-ago)} }
	for _, test := range []struct {
		reason  string
		pool    string // the rate of p
		cluster *karpv1.DisruptionRate
		begun   map[string][]karpv1.Begun
		goes    map[string]int
		next    time.Duration
		why     string // why nodes stay
	}{
		{reason: "without a rate all go", goes: map[string]int{"p": 6, "q": 2}},
		{reason: "what began without a rate does not count", begun: map[string][]karpv1.Begun{"p": {ago(6, time.Minute)}}, goes: map[string]int{"p": 6, "q": 2}},
		{reason: "a share of the NodePool goes", pool: "50%/10m", goes: map[string]int{"p": 3, "q": 2}, next: 10 * time.Minute, why: "its NodePool's disruption rate is used up"},
		{reason: "what began counts for as long as the rate spans", pool: "50%/10m", begun: map[string][]karpv1.Begun{"p": {ago(1, 4*time.Minute), ago(1, 5*time.Minute)}},
			goes: map[string]int{"p": 1, "q": 2}, next: 5 * time.Minute, why: "its NodePool's disruption rate"},
		{reason: "what began before that does not", pool: "50%/10m", begun: map[string][]karpv1.Begun{"p": {ago(6, 10*time.Minute)}},
			goes: map[string]int{"p": 3, "q": 2}, next: 10 * time.Minute, why: "its NodePool's disruption rate"},
		{reason: "what began elsewhere does not", pool: "50%/10m", begun: map[string][]karpv1.Begun{"q": {ago(6, time.Minute)}},
			goes: map[string]int{"p": 3, "q": 2}, next: 10 * time.Minute, why: "its NodePool's disruption rate"},
		{reason: "more began than the rate allows by now", pool: "1/10m", begun: map[string][]karpv1.Begun{"p": {ago(5, time.Minute)}},
			goes: map[string]int{"q": 2}, next: 9 * time.Minute, why: "its NodePool's disruption rate"},
		{reason: "a rate of none is no question of time", pool: "0/10m", goes: map[string]int{"q": 2}, why: "its NodePool's disruption rate"},
		{reason: "a rate that cannot be read keeps the NodePool", pool: "fast", goes: map[string]int{"q": 2}, why: `its NodePool's budgets cannot be read: annotation tenon.sh/disruption-rate: "fast" must be`},
		{reason: "the cluster's counts all NodePools", cluster: rate("3/1h"), begun: map[string][]karpv1.Begun{"q": {ago(1, 50*time.Minute)}},
			goes: map[string]int{"p": 2}, next: 10 * time.Minute, why: "the cluster's disruption rate"},
		{reason: "both hold", pool: "1/10m", cluster: rate("2/1h"), goes: map[string]int{"p": 1, "q": 1}, next: 10 * time.Minute, why: "disruption rate is used up"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			w := world{pools: []plan.Pool{{NodePool: nodePool("p")}, {NodePool: nodePool("q")}}}
			if test.pool != "" {
				w.pools[0].NodePool.Annotations = map[string]string{karpv1.DisruptionRateAnnotationKey: test.pool}
			}
			for i := range 8 {
				w.nodes = append(w.nodes, existing(string(rune('a'+i)), "m6i.large", func(n *plan.Node) {
					n.Created = now.Add(time.Duration(i-10) * time.Hour)
					if i >= 6 {
						n.Pool = "q"
					}
				}))
			}
			in := w.input()
			in.Rate, in.Begun = test.cluster, test.begun
			d := emptiness(in)
			goes := map[string]int{}
			for _, command := range d.Commands {
				for _, key := range command.Nodes {
					for _, n := range w.nodes {
						if n.Key() == key {
							goes[n.Pool]++
						}
					}
				}
			}
			if goes["p"] != test.goes["p"] || goes["q"] != test.goes["q"] {
				t.Errorf("%v go, want %v", goes, test.goes)
			}
			for _, v := range d.Verdicts {
				if !strings.Contains(v.Message, test.why) {
					t.Errorf("%s stays because %q, want %q", v.Node, v.Message, test.why)
				}
			}
			if test.next == 0 != d.NextLook.IsZero() || test.next > 0 && !d.NextLook.Equal(now.Add(test.next)) {
				t.Errorf("the next look is at %s, want %s after now", d.NextLook, test.next)
			}
		})
	}
}
