package activities

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// leftoversOf returns leftovers with these names.
func leftoversOf(names ...string) []cloud.Leftover {
	var all []cloud.Leftover
	for _, name := range names {
		all = append(all, cloud.Leftover{Kind: "launch template", Name: name})
	}
	return all
}

// TestLeftoversAreRemovedAfterAnHour asks the cloud again and again, and changes what it answers. Each sweep is one of a
// new process, which knows only what the result of the last sweep said.
func TestLeftoversAreRemovedAfterAnHour(t *testing.T) {
	t.Parallel()
	type answer struct {
		after   time.Duration // since the first
		found   []cloud.Leftover
		fails   bool             // the cloud does not answer
		removed []cloud.Leftover // at the end of this sweep
	}
	many := make([]string, maxLeftovers+5)
	for n := range many {
		many[n] = fmt.Sprintf("t-%02d", n)
	}
	for reason, answers := range map[string][]answer{
		"what has been one for an hour is removed": {
			{after: 0, found: leftoversOf("a")},
			{after: 30 * time.Minute, found: leftoversOf("a", "b")},
			{after: 60 * time.Minute, found: leftoversOf("a", "b"), removed: leftoversOf("a")},
			{after: 90 * time.Minute, found: leftoversOf("b"), removed: leftoversOf("b")},
		},
		"what has come into use meanwhile begins anew": {
			{after: 0, found: leftoversOf("a")},
			{after: 30 * time.Minute},
			{after: 60 * time.Minute, found: leftoversOf("a")},
			{after: 90 * time.Minute, found: leftoversOf("a")},
			{after: 120 * time.Minute, found: leftoversOf("a"), removed: leftoversOf("a")},
		},
		"sweeps in between do not ask": {
			{after: 0, found: leftoversOf("a")},
			{after: 10 * time.Minute},
			{after: 30 * time.Minute, found: leftoversOf("a")},
			{after: 60 * time.Minute, found: leftoversOf("a"), removed: leftoversOf("a")},
			{after: 62 * time.Minute},
		},
		"a question without an answer changes nothing": {
			{after: 0, found: leftoversOf("a")},
			{after: 30 * time.Minute, fails: true},
			{after: 32 * time.Minute, found: leftoversOf("a")},
			{after: 62 * time.Minute, found: leftoversOf("a"), removed: leftoversOf("a")},
		},
		"after a time without sweeps it begins anew": {
			{after: 0, found: leftoversOf("a")},
			{after: 3 * time.Hour, found: leftoversOf("a")},
			{after: 4 * time.Hour, found: leftoversOf("a"), removed: leftoversOf("a")},
		},
		"one sweep removes few, and the next one goes on": {
			{after: 0, found: leftoversOf(many...)},
			{after: 30 * time.Minute, found: leftoversOf(many...)},
			{after: 60 * time.Minute, found: leftoversOf(many...), removed: leftoversOf(many[:maxLeftovers]...)},
			{after: 62 * time.Minute, removed: leftoversOf(many[maxLeftovers:]...)},
			{after: 64 * time.Minute},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			mirror := sweptMirror{kube: fake.NewClientBuilder().WithScheme(testScheme(t)).Build()}
			var known *workflows.Leftovers
			began := time.Now()
			for _, step := range answers {
				provider := &sweptCloud{leftovers: step.found, noLeftovers: step.fails}
				process := sweep{sweeper: &sweeper{cloud: provider, mirror: mirror}, now: began.Add(step.after)}
				process.leftovers(t.Context(), known)
				if diff := cmp.Diff(step.removed, provider.removed, cmpEmpty); diff != "" {
					t.Errorf("after %s (-want +got):\n%s", step.after, diff)
				}
				kept, err := json.Marshal(process.result)
				if err != nil {
					t.Fatal(err)
				}
				var result workflows.SweepResult
				if err := json.Unmarshal(kept, &result); err != nil {
					t.Fatal(err)
				}
				known = result.Leftovers
			}
		})
	}
}

// cmpEmpty makes no difference between no slice and an empty one.
var cmpEmpty = cmp.FilterValues(func(a, b []cloud.Leftover) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

// TestSweepRemovesLeftovers lets a sweep find something that has been a leftover for long.
func TestSweepRemovesLeftovers(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		orphans int
		want    []cloud.Leftover
	}{
		"a sweep that trusts what it sees removes it": {want: leftoversOf("a")},
		"one that does not removes nothing":           {orphans: 10},
	} {
		provider := &sweptCloud{leftovers: leftoversOf("a")}
		for n := range test.orphans {
			provider.instances = append(provider.instances, sweptInstance(fmt.Sprint("i-", n), "", old))
		}
		class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		activities := New(Config{Cluster: "c", SweepMost: SweepMost, Cloud: provider, Temporal: &sweptTemporal{signaled: map[string]workflows.Ending{}}, Mirror: sweptMirror{},
			Log: zap.NewNop(), Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects([]client.Object{class}...).Build()})
		before := &workflows.Leftovers{Asked: time.Now().Add(-leftoversEvery), Known: []workflows.KnownLeftover{{Kind: "launch template", Name: "a", Since: time.Now().Add(-leftoverAge)}}}
		got := sweepAgain(t, activities, before)
		if diff := cmp.Diff(test.want, provider.removed); diff != "" || len(got.Collected) != len(test.want) || got.Failures > 0 {
			t.Errorf("%s: reports %v, failed %v, removed (-want +got):\n%s", reason, got.Collected, got.Failed, diff)
		}
		if test.orphans > 0 && !cmp.Equal(got.Leftovers, before) {
			t.Errorf("%s: what is known of leftovers is lost: %+v", reason, got.Leftovers)
		}
		if test.orphans == 0 && !slices.Equal(provider.classes, []string{"default"}) {
			t.Errorf("%s: the cloud was told of the classes %v", reason, provider.classes)
		}
	}
}
