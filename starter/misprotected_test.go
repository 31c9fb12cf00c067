package starter

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/tenon-sh/tenon/plan"
)

// An invalid value is reported once for every object that carries it.
func TestMisprotected(t *testing.T) {
	t.Parallel()
	recorder := record.NewFakeRecorder(1000)
	said := func() []string {
		var events []string
		for len(recorder.Events) > 0 {
			events = append(events, <-recorder.Events)
		}
		return events
	}
	m := misprotected{events: recorder}
	node := func(value string, pods ...*plan.Pod) *plan.Node {
		return &plan.Node{Name: "n", UID: "n", Claim: "c", ClaimUID: "c", Pool: "p", Misprotected: value, Pods: pods}
	}
	pod := func(i int, value string) *plan.Pod {
		return &plan.Pod{Namespace: "default", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("p", i)), Misprotected: value}
	}
	look := func(n *plan.Node) (events []string, more bool) {
		more = m.tell(&plan.Snapshot{Nodes: []*plan.Node{n}})
		return said(), more
	}
	if events, more := look(node("", pod(1, ""), pod(2, "perhaps"))); len(events) != 1 || more || !strings.Contains(events[0], "InvalidDoNotDisruptAnnotation") || !strings.Contains(events[0], `"perhaps"`) {
		t.Errorf("one pod: %q", events)
	}
	if events, _ := look(node("", pod(2, "perhaps"))); len(events) != 0 {
		t.Errorf("the same again: %q", events)
	}
	if events, _ := look(node("soon", pod(2, "maybe"))); len(events) != 3 {
		t.Errorf("the Node, its claim, and another value of the pod: %q", events)
	}
	var many []*plan.Pod
	for i := range 120 {
		many = append(many, pod(i, "perhaps"))
	}
	for _, want := range []int{50, 50, 20, 0} {
		if events, more := look(node("", many...)); len(events) != want || more != (want == 50) {
			t.Errorf("%d said at once, more %v, want %d", len(events), more, want)
		}
	}
}
