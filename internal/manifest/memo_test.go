package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAlikePods checks that pods written alike are read as what each of them says.
func TestAlikePods(t *testing.T) {
	t.Parallel()
	yaml := func(name, container, cpu string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata:\n  labels: {app: web}\n  name: %s\nspec:\n  containers:\n  - name: %s\n    resources: {limits: {cpu: %s}}\n", name, container, cpu)
	}
	json := func(order, name, container, cpu string) string {
		metadata, spec := fmt.Sprintf(`"metadata":{"name":%q}`, name), fmt.Sprintf(`"spec":{"containers":[{"name":%q,"resources":{"limits":{"cpu":%q}}}]}`, container, cpu)
		if order == "spec first" {
			metadata, spec = spec, metadata
		}
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod",%s,%s}`, metadata, spec)
	}
	for name, test := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Names": {reason: "only the names differ", text: yaml("web-1", "c", "1") + yaml("web-2", "c", "1") + yaml("web-3", "c", "1"),
			want: []string{"default/web-1 cpu 1, pods 1", "default/web-2 cpu 1, pods 1", "default/web-3 cpu 1, pods 1"}},
		"Requests": {reason: "what they ask for differs as well", text: yaml("web-1", "c", "1") + yaml("web-2", "c", "2"),
			want: []string{"default/web-1 cpu 1, pods 1", "default/web-2 cpu 2, pods 1"}},
		"Containers": {reason: "the pod's name is elsewhere, too", text: yaml("web-1", "web-1", "1") + yaml("web-2", "web-2", "1"),
			want: []string{"default/web-1 cpu 1, pods 1", "default/web-2 cpu 1, pods 1"}},
		"JSON": {reason: "the same in JSON", text: json("", "web-1", "c", "1") + json("", "web-2", "c", "1"),
			want: []string{"default/web-1 cpu 1, pods 1", "default/web-2 cpu 1, pods 1"}},
		"SpecFirst": {reason: "the first name is not the pod's",
			text: json("spec first", "web-1", "c-1", "1") + json("spec first", "web-1b", "c-2", "1"),
			want: []string{"default/web-1 cpu 1, pods 1", "default/web-1b cpu 1, pods 1"}},
		"NoName": {reason: "words that YAML takes for something else are left to it",
			text: yaml("x-1", "c", "1") + yaml("x-2 # a comment", "c", "1") + yaml(`"x-3"`, "c", "1"),
			want: []string{"default/x-1 cpu 1, pods 1", "default/x-2 cpu 1, pods 1", "default/x-3 cpu 1, pods 1"}},
		"ListOfAlikes": {reason: "items of a list are documents",
			text: `{"apiVersion":"v1","kind":"List","items":[` + json("", "web-1", "c", "1") + "," + json("", "web-2", "c", "1") + "]}",
			want: []string{"default/web-1 cpu 1, pods 1", "default/web-2 cpu 1, pods 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, _, err := read(t, test.text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range cluster.Snapshot.Pending {
				got = append(got, p.Key()+" "+p.Class.Requests.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
	_, _, err := read(t, yaml("web-1", "c", "1")+yaml("web-1", "c", "1"))
	if err == nil || !strings.Contains(err.Error(), "document 2, Pod default/web-1: metadata.name: Pod default/web-1 is there already") {
		t.Errorf("two pods of one name: %v", err)
	}
}
