package plan_test

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"

	"github.com/tenon-sh/tenon/plan"
)

// trackedSlices are the slices as the kube-scheduler sees them: its own tracker applies the DeviceTaintRules.
func trackedSlices(t *testing.T, slices []*resourcev1.ResourceSlice, rules []*resourcev1beta2.DeviceTaintRule) []*resourcev1.ResourceSlice {
	t.Helper()
	var objects []runtime.Object
	for _, s := range slices {
		objects = append(objects, s)
	}
	for _, rule := range rules {
		objects = append(objects, rule)
	}
	client := fake.NewClientset(objects...)
	watched := informers.NewSharedInformerFactory(client, 0)
	tracking, err := tracker.StartTracker(t.Context(), tracker.Options{EnableDeviceTaintRules: true, EnableConsumableCapacity: true, KubeClient: client,
		SliceInformer: watched.Resource().V1().ResourceSlices(), TaintInformer: watched.Resource().V1beta2().DeviceTaintRules(),
		ClassInformer: watched.Resource().V1().DeviceClasses()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracking.Stop)
	watched.Start(t.Context().Done())
	watched.WaitForCacheSync(t.Context().Done())
	<-tracking.HasSyncedChecker().Done()
	patched, err := tracking.ListPatchedResourceSlices()
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// TestDeviceTaintRules plans for two pods with a device each, and two nodes with two devices each. Every row is judged by the
// kube-scheduler's own tracker: with the taints that it gives the devices, and without rules, the plan is the same.
func TestDeviceTaintRules(t *testing.T) {
	t.Parallel()
	rule := func(selector *resourcev1beta2.DeviceTaintSelector) *resourcev1beta2.DeviceTaintRule {
		return &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Spec: resourcev1beta2.DeviceTaintRuleSpec{
			DeviceSelector: selector, Taint: resourcev1beta2.DeviceTaint{Key: "broken", Effect: resourcev1beta2.DeviceTaintEffectNoSchedule}}}
	}
	informing := rule(&resourcev1beta2.DeviceTaintSelector{})
	informing.Spec.Taint.Effect = resourcev1beta2.DeviceTaintEffectNone
	const left = "left: the devices of g5.xlarge do not meet all requests and constraints of its resource claims at once, as some have the taint broken:NoSchedule"
	const tolerating = one + ", tolerations: [{key: broken, operator: Exists}]"
	for name, test := range map[string]struct {
		reason  string
		rule    *resourcev1beta2.DeviceTaintRule
		request string
		want    string
	}{
		"None":      {reason: "no rule is about these devices", rule: rule(&resourcev1beta2.DeviceTaintSelector{Driver: new("other.example.com")}), want: "claim-n1 2"},
		"Pool":      {reason: "the devices of one node", rule: rule(&resourcev1beta2.DeviceTaintSelector{Pool: new("n1")}), want: "claim-n2 2"},
		"Device":    {reason: "one device of each node", rule: rule(&resourcev1beta2.DeviceTaintSelector{Device: new("gpu-0")}), want: "claim-n1 1, claim-n2 1"},
		"OneDevice": {reason: "one device of one node", rule: rule(&resourcev1beta2.DeviceTaintSelector{Driver: new(gpuDriver), Pool: new("n1"), Device: new("gpu-0")}), want: "claim-n1 1, claim-n2 1"},
		"Tolerated": {reason: "the claims tolerate the taint", rule: rule(&resourcev1beta2.DeviceTaintSelector{Pool: new("n1")}), request: tolerating, want: "claim-n1 2"},
		"Effect":    {reason: "a taint without effect keeps nothing away", rule: informing, want: "claim-n1 2"},
		"Driver": {reason: "all devices of the driver, those of new nodes as well", rule: rule(&resourcev1beta2.DeviceTaintSelector{Driver: new(gpuDriver)}),
			want: left + ", " + left},
		"NoSelector": {reason: "without a selector the scheduler takes a rule to be about all devices", rule: rule(nil),
			want: left + ", " + left},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene := func() *draScene {
				s := newDRAScene(t, map[string][]string{"g5.xlarge": {graphics("gpu-0", "a", 0), graphics("gpu-1", "a", 0)}})
				s.template(t, 2, "500m", "{requests: ["+request("gpu", one)+"]}")
				if test.request != "" {
					s.pods, s.devices.Claims = nil, map[string]*resourcev1.ResourceClaim{}
					s.template(t, 2, "500m", "{requests: ["+request("gpu", test.request)+"]}")
				}
				for _, node := range []string{"n1", "n2"} {
					s.node(t, node, "g5.xlarge", graphics("gpu-0", "a", 0), graphics("gpu-1", "a", 0))
				}
				return s
			}
			rules := []*resourcev1beta2.DeviceTaintRule{test.rule}
			ours, theirs := scene(), scene()
			ours.devices.TaintRules = rules
			theirs.devices.Slices = trackedSlices(t, theirs.devices.Slices, rules)
			for i := range theirs.pools[0].Types {
				typ := theirs.pools[0].Types[i]
				typ.Devices = trackedSlices(t, typ.Devices, rules)
			}
			got, judged := packed(plan.Pack(ours.input())), packed(plan.Pack(theirs.input()))
			if got != test.want || judged != test.want {
				t.Errorf("%s:\n        got %s\n       want %s\n with tracker %s", test.reason, got, test.want, judged)
			}
		})
	}
}

// A rule is no reason to remember that devices are tainted: it is applied to what drivers publish whenever a plan is made.
func TestDeviceTaintRulesAreNotLearnt(t *testing.T) {
	t.Parallel()
	s := newDRAScene(t, nil)
	s.node(t, "n1", "g5.xlarge", graphics("gpu-0", "a", 0))
	s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
	s.devices.TaintRules = []*resourcev1beta2.DeviceTaintRule{{Spec: resourcev1beta2.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1beta2.DeviceTaintSelector{Pool: new("n1")}, Taint: resourcev1beta2.DeviceTaint{Key: "broken", Effect: resourcev1beta2.DeviceTaintEffectNoExecute}}}}
	if got, want := packed(plan.Pack(s.input())), "g5.xlarge 1"; got != want {
		t.Errorf("the node's device is broken, and the plan is %s; want %s", got, want)
	}
}
