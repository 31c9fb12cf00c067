package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// nodeOverlay makes an overlay; options change it.
func nodeOverlay(name string, options ...func(*v1alpha1.NodeOverlay)) *v1alpha1.NodeOverlay {
	o := &v1alpha1.NodeOverlay{}
	o.Name = name
	for _, option := range options {
		option(o)
	}
	return o
}

func about(key string, operator corev1.NodeSelectorOperator, values ...string) func(*v1alpha1.NodeOverlay) {
	return func(o *v1alpha1.NodeOverlay) {
		o.Spec.Requirements = append(o.Spec.Requirements, v1alpha1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values})
	}
}

func aboutType(names ...string) func(*v1alpha1.NodeOverlay) {
	return about(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, names...)
}

func atPrice(price string) func(*v1alpha1.NodeOverlay) {
	return func(o *v1alpha1.NodeOverlay) { o.Spec.Price = &price }
}

func adjusted(by string) func(*v1alpha1.NodeOverlay) {
	return func(o *v1alpha1.NodeOverlay) { o.Spec.PriceAdjustment = &by }
}

func weighing(weight int32) func(*v1alpha1.NodeOverlay) {
	return func(o *v1alpha1.NodeOverlay) { o.Spec.Weight = &weight }
}

func having(name corev1.ResourceName, quantity string) func(*v1alpha1.NodeOverlay) {
	return func(o *v1alpha1.NodeOverlay) {
		if o.Spec.Capacity == nil {
			o.Spec.Capacity = corev1.ResourceList{}
		}
		o.Spec.Capacity[name] = resource.MustParse(quantity)
	}
}

// shopWindow returns two types, on-demand for 1 $ and 2 $ in two zones, the first one as spot too.
func shopWindow() []*cloud.InstanceType {
	zones := []string{"us-east-1a", "us-east-1b"}
	return []*cloud.InstanceType{
		machineSpec{name: "m5.large", cores: 2, memory: 8, price: 1, zones: zones}.instanceType(),
		machineSpec{name: "m5.xlarge", cores: 4, memory: 16, price: 2, zones: zones, kinds: []string{"on-demand"}}.instanceType(),
	}
}

// overlaidParts returns what overlays changed, in short form: "m5.large on-demand us-east-1a 0.5", "m5.large a.b/c 2".
func overlaidParts(before, after []*cloud.InstanceType) []string {
	var found []string
	for i, typ := range after {
		for j, offering := range typ.Offerings {
			if offering != before[i].Offerings[j] {
				found = append(found, fmt.Sprintf("%s %s %s %.4g", typ.Name, offering.CapacityType, strings.TrimPrefix(offering.Zone, "us-east-1"), offering.Price))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(typ.Overlaid)) {
			capacity, allocatable := typ.Capacity[name], typ.Allocatable[name]
			found = append(found, fmt.Sprintf("%s %s %s %s", typ.Name, name, capacity.String(), allocatable.String()))
		}
	}
	return found
}

func TestOverlays(t *testing.T) {
	t.Parallel()
	const device = "smarter-devices/fuse"
	large, both := aboutType("m5.large"), []string{"m5.large on-demand a", "m5.large spot a", "m5.large on-demand b", "m5.large spot b"}
	everywhere := func(price string) []string {
		var all []string
		for _, offering := range both {
			all = append(all, offering+" "+price)
		}
		return all
	}
	for name, test := range map[string]struct {
		reason   string
		overlays []*v1alpha1.NodeOverlay
		want     []string
		problems map[string]string
	}{
		"Nothing": {reason: "no overlay, no change"},
		"Price":   {reason: "a price holds for every offering of the type", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", large, atPrice("0.5"))}, want: everywhere("0.5")},
		"Free":    {reason: "what costs nothing is still sold", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", large, adjusted("-100%"))}, want: everywhere("1e-09")},
		"Offering": {reason: "zone and capacity type narrow it to offerings", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", adjusted("-10%"),
			about(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "on-demand"), about(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, "us-east-1b"))},
			want: []string{"m5.large on-demand a 0.9", "m5.xlarge on-demand a 1.8"}},
		"Size": {reason: "numbers are compared", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", adjusted("+1"), about("karpenter.k8s.aws/instance-cpu", karpv1.NodeSelectorOpGte, "4"))},
			want: []string{"m5.xlarge on-demand a 3", "m5.xlarge on-demand b 3"}},
		"Capacity": {reason: "a type has a resource if one offering is meant", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", having(device, "2"), about(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot"))},
			want: []string{"m5.large smarter-devices/fuse 2 2"}},
		"Pool":     {reason: "the pool's name is a label", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", large, atPrice("0.5"), about(karpv1.NodePoolLabelKey, corev1.NodeSelectorOpIn, "web"))}, want: everywhere("0.5")},
		"Other":    {reason: "another pool's is none of its", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", large, atPrice("0.5"), about(karpv1.NodePoolLabelKey, corev1.NodeSelectorOpIn, "batch"))}},
		"Template": {reason: "so are the labels of its template", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", large, atPrice("0.5"), about("team", corev1.NodeSelectorOpIn, "shop"))}, want: everywhere("0.5")},
		"Unknown":  {reason: "a label that no node has yet is not there", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", large, atPrice("0.5"), about("owner", corev1.NodeSelectorOpExists))}},
		"Weight": {reason: "the higher weight wins, field by field", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("low", large, atPrice("0.1"), having(device, "1"), weighing(1)), nodeOverlay("high", large, atPrice("0.7"), weighing(2))},
			want: append(everywhere("0.7"), "m5.large smarter-devices/fuse 1 1")},
		"Merge": {reason: "resources of several overlays are all there", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("a", large, having(device, "1")), nodeOverlay("b", large, having("example.com/licence", "3"))},
			want: []string{"m5.large example.com/licence 3 3", "m5.large smarter-devices/fuse 1 1"}},
		"Conflict": {reason: "of equals the last of the alphabet applies", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("a", large, atPrice("0.1")), nodeOverlay("b", large, atPrice("0.2"))}, want: everywhere("0.2"),
			problems: map[string]string{"a": "Conflict: NodeOverlay b has the same weight and sets the price of on-demand m5.large in us-east-1a in NodePool web, too"}},
		"HiddenConflict": {reason: "equals conflict though neither wins", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("a", large, atPrice("0.1"), weighing(1)), nodeOverlay("b", large, atPrice("0.2"), weighing(1)), nodeOverlay("c", large, atPrice("0.3"), weighing(9))},
			want: everywhere("0.3"), problems: map[string]string{"a": "Conflict: NodeOverlay b has the same weight"}},
		"CapacityConflict": {reason: "a resource is set once", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("a", large, having(device, "1")), nodeOverlay("b", having(device, "2"))},
			want:     []string{"m5.large smarter-devices/fuse 2 2", "m5.xlarge smarter-devices/fuse 2 2"},
			problems: map[string]string{"a": "Conflict: NodeOverlay b has the same weight and sets smarter-devices/fuse of m5.large"}},
		"Apart": {reason: "equals that mean different machines get on", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("a", aboutType("m5.xlarge"), atPrice("0.1")), nodeOverlay("b", large, atPrice("0.2"))},
			want: append(everywhere("0.2"), "m5.xlarge on-demand a 0.1", "m5.xlarge on-demand b 0.1")},
		"Whole": {reason: "what conflicts in part applies nowhere", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("a", atPrice("0.1")), nodeOverlay("b", aboutType("m5.xlarge"), atPrice("0.2"))},
			want: []string{"m5.xlarge on-demand a 0.2", "m5.xlarge on-demand b 0.2"}, problems: map[string]string{"a": "Conflict: NodeOverlay b"}},
		"Mistake": {reason: "a mistake names its field and spoils no other", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("a", having(corev1.ResourceMemory, "1Gi")), nodeOverlay("b", large, atPrice("0.2"))},
			want: everywhere("0.2"), problems: map[string]string{"a": "RuntimeValidation: spec.capacity[memory]: Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := shopWindow()
			pool := nodePool("web", func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": "shop"} })
			overlays, problems := plan.NewOverlays(nodeclass.Labels(), test.overlays, []plan.Pool{{NodePool: pool, Types: types}})
			if diff := cmp.Diff(test.want, overlaidParts(types, overlays.Apply(pool, types))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(shopWindow(), types); diff != "" {
				t.Errorf("%s: what the cloud said has changed:\n%s", test.reason, diff)
			}
			if len(problems) != len(test.problems) {
				t.Errorf("%s: problems %v, want %v", test.reason, problems, test.problems)
			}
			for name, want := range test.problems {
				if got := problems[name].Reason + ": " + problems[name].Message; !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s: %q, want %q", test.reason, name, got, want)
				}
			}
		})
	}
}

// Types that no overlay concerns are the objects that the cloud returned: thousands of offerings are not copied for
// one.
func TestOverlaysShareWhatTheyLeave(t *testing.T) {
	t.Parallel()
	types, pool := shopWindow(), nodePool("web")
	overlays, _ := plan.NewOverlays(nodeclass.Labels(), []*v1alpha1.NodeOverlay{nodeOverlay("a", aboutType("m5.large"), atPrice("0.5"))}, []plan.Pool{{NodePool: pool, Types: types}})
	if made := overlays.Apply(pool, types); made[0] == types[0] || made[1] != types[1] {
		t.Error("the type that has changed is shared, or the other one is not")
	}
}

// The order of overlays does not matter.
func TestOverlaysInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		types, pool := shopWindow(), nodePool("web")
		drawn := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *v1alpha1.NodeOverlay {
			o := nodeOverlay("")
			if rapid.Bool().Draw(t, "about one type") {
				aboutType(rapid.SampledFrom([]string{"m5.large", "m5.xlarge"}).Draw(t, "type"))(o)
			}
			if rapid.Bool().Draw(t, "about a zone") {
				about(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, rapid.SampledFrom([]string{"us-east-1a", "us-east-1b"}).Draw(t, "zone"))(o)
			}
			if rapid.Bool().Draw(t, "price") {
				atPrice(rapid.SampledFrom([]string{"0.1", "0.2", "0.3"}).Draw(t, "price"))(o)
			}
			if rapid.Bool().Draw(t, "capacity") {
				having("a.b/c", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "quantity"))(o)
			}
			weighing(rapid.Int32Range(1, 3).Draw(t, "weight"))(o)
			return o
		}), 0, 6).Draw(t, "overlays")
		for i, o := range drawn {
			o.Name = fmt.Sprint("o", i)
		}
		pools := []plan.Pool{{NodePool: pool, Types: types}}
		one, problems := plan.NewOverlays(nodeclass.Labels(), drawn, pools)
		other, again := plan.NewOverlays(nodeclass.Labels(), rapid.Permutation(drawn).Draw(t, "order"), pools)
		if diff := cmp.Diff(problems, again); diff != "" {
			t.Fatalf("problems differ:\n%s", diff)
		}
		if diff := cmp.Diff(one.Apply(pool, types), other.Apply(pool, types)); diff != "" {
			t.Fatalf("types differ:\n%s", diff)
		}
	})
}

// Pack buys by the prices and for the resources of overlays.
func TestPackWithOverlays(t *testing.T) {
	t.Parallel()
	device := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests["smarter-devices/fuse"] = resource.MustParse("1")
	}
	for name, test := range map[string]struct {
		reason   string
		overlays []*v1alpha1.NodeOverlay
		options  []func(*corev1.Pod)
		want     string
	}{
		"Plain":    {reason: "the cheaper machine holds the pod", want: "m5.large"},
		"Discount": {reason: "a discount makes the other one cheaper", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", aboutType("m5.xlarge"), atPrice("0.01"))}, want: "m5.xlarge"},
		"Free":     {reason: "what is free is cheapest of all", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", aboutType("m5.xlarge"), atPrice("0"))}, want: "m5.xlarge"},
		"Unknown":  {reason: "nobody has the device", options: []func(*corev1.Pod){device}},
		"Device":   {reason: "an overlay says who has it", overlays: []*v1alpha1.NodeOverlay{nodeOverlay("a", aboutType("m5.xlarge"), having("smarter-devices/fuse", "1"))}, options: []func(*corev1.Pod){device}, want: "m5.xlarge"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := nodePool("web", onDemand())
			w := &world{pods: []*corev1.Pod{newPod("a", "500m", "1Gi", test.options...)}, pools: []plan.Pool{{NodePool: pool, Types: shopWindow()}}}
			overlays, _ := plan.NewOverlays(nodeclass.Labels(), test.overlays, w.pools)
			w.pools[0].Types = overlays.Apply(pool, w.pools[0].Types)
			packed := plan.Pack(w.input())
			got := ""
			if len(packed.Claims) > 0 {
				got = packed.Claims[0].InstanceTypes[0]
			}
			if got != test.want {
				t.Errorf("%s: bought %q, want %q (%+v)", test.reason, got, test.want, packed.Unplaced)
			}
		})
	}
}
