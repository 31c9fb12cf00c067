package workload

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/market"
)

// Every batch has a unique name, is the same whenever it is asked, names every pod once and has DaemonSets.
func TestUnpreparedBatches(t *testing.T) {
	t.Parallel()
	catalogue, err := market.EC2(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, b := range Unprepared(catalogue) {
		if names[b.Name] {
			t.Errorf("two batches are called %s", b.Name)
		}
		names[b.Name] = true
		if strings.Contains(b.Name, "0000") {
			continue // drawn like the smaller ones, and slow
		}
		q := b.Ask()
		if len(q.DaemonSets) != agents {
			t.Errorf("%s has %d DaemonSets", b.Name, len(q.DaemonSets))
		}
		keys := podKeys(q)
		slices.Sort(keys)
		if len(slices.Compact(keys)) != len(q.Pods) {
			t.Errorf("%s names pods twice", b.Name)
		}
		if diff := cmp.Diff(podKeys(q), podKeys(b.Ask())); diff != "" {
			t.Errorf("%s is another one when it is asked again:\n%s", b.Name, diff)
		}
	}
}

func podKeys(q *compare.Question) []string {
	keys := make([]string, len(q.Pods))
	for i, p := range q.Pods {
		keys[i] = compare.Key(p) + " " + p.Spec.Containers[0].Resources.Requests.Cpu().String() + " " + p.Spec.Containers[0].Resources.Requests.Memory().String()
	}
	return keys
}
