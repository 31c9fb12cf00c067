package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

func TestDeviceTemplates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, text string
		// want are the slices: driver/pool, the number of slices of the pool, and the number of devices.
		want  string
		fails string
	}{
		"None":   {reason: "without the annotation nothing is described", text: "", want: ""},
		"YAML":   {reason: "pools need no name", text: "- driver: gpu.example.com\n  devices: [{name: a}, {name: b}]", want: "gpu.example.com/node 1 2"},
		"JSON":   {reason: "JSON is YAML", text: `[{"driver": "gpu.example.com", "pool": {"name": "x"}, "devices": [{"name": "a"}]}]`, want: "gpu.example.com/x 1 1"},
		"Pool":   {reason: "slices of a pool are counted", text: "[{driver: a.example.com, devices: [{name: a}]}, {driver: a.example.com, devices: [{name: b}]}]", want: "a.example.com/node 2 1, a.example.com/node 2 1"},
		"Typo":   {reason: "a field that ResourceSlices do not have is named", text: "[{driver: a.example.com, device: []}]", fails: "unknown field"},
		"Driver": {reason: "somebody has to publish it", text: "[{devices: [{name: a}]}]", fails: "[0].driver must be set"},
		"Where":  {reason: "a template is of every node", text: "[{driver: a.example.com, allNodes: true}]", fails: "remove nodeName, nodeSelector, allNodes and perDeviceNodeSelection"},
		"Both":   {reason: "the API refuses both in one slice", text: "[{driver: a.example.com, devices: [{name: a}], sharedCounters: [{name: c, counters: {x: {value: 1}}}]}]", fails: "split it in two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overlay := &v1alpha1.NodeOverlay{}
			overlay.Annotations = map[string]string{v1alpha1.DeviceTemplatesAnnotationKey: test.text}
			templates, err := overlay.DeviceTemplates()
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%s: got error %v, want %s", test.reason, err, test.fails)
				}
				if problems := overlay.Validate().ToAggregate(); problems == nil || !strings.Contains(problems.Error(), "metadata.annotations[tenon.sh/device-templates]") {
					t.Errorf("%s: the overlay is refused with %v", test.reason, problems)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			var got []string
			for _, s := range templates {
				got = append(got, fmt.Sprintf("%s/%s %d %d", s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Pool.ResourceSliceCount, len(s.Spec.Devices)))
			}
			if all := strings.Join(got, ", "); all != test.want {
				t.Errorf("%s: got %s, want %s", test.reason, all, test.want)
			}
		})
	}
}
