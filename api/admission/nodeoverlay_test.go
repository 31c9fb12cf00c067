package admission

// minimalNodeOverlay is the shortest NodeOverlay that changes something.
const minimalNodeOverlay = `
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: discount}
spec:
  requirements: []
  priceAdjustment: "-10%"
`

func nodeOverlayRefusals() []refusal {
	const requirements, price, adjustment = "spec.requirements", "spec.price", "spec.priceAdjustment"
	return []refusal{
		{reason: "a price has one source", patch: set(price, `"0.5"`), field: "spec", message: "cannot set both 'price' and 'priceAdjustment'"},
		{reason: "a price has no unit", patch: set("spec", `{priceAdjustment: null, price: "$5"}`), field: price, message: "should match"},
		{reason: "a price is not negative", patch: set("spec", `{priceAdjustment: null, price: "-5"}`), field: price, message: "should match"},
		{reason: "an adjustment has a sign", patch: set(adjustment, `"10%"`), field: adjustment, message: "should match"},
		{reason: "no more than all is taken off", patch: set(adjustment, `"-101%"`), field: adjustment, message: "should match"},
		{reason: "an adjustment is a number", patch: set(adjustment, `"+much"`), field: adjustment, message: "should match"},
		{reason: "cpu is what it is", patch: set("spec.capacity.cpu", `"8"`), field: "spec.capacity", message: "invalid resource restricted"},
		{reason: "a capacity is a quantity", patch: set("spec.capacity.a/b", `"some"`), field: "spec.capacity.a/b", message: "should match"},
		{reason: "a weight of 0 is none", patch: set("spec.weight", "0"), field: "spec.weight", message: "greater than or equal to 1"},
		{reason: "weight is bounded above", patch: set("spec.weight", "10001"), field: "spec.weight", message: "less than or equal to 10000"},
		{reason: "requirements are needed, be it none", patch: set(requirements, "null"), field: requirements, message: "Required value"},
		{reason: "there is no such field", patch: set("spec.overhead", "{}"), field: "spec.overhead", message: "unknown field"},
		{
			reason: "In needs a value", patch: set(requirements, `[{key: kubernetes.io/arch, operator: In, values: []}]`),
			field: requirements, message: "requirements with operator 'In' must have a value defined",
		},
		{
			reason: "NotIn needs a value", patch: set(requirements, `[{key: kubernetes.io/arch, operator: NotIn, values: []}]`),
			field: requirements, message: "requirements with operator 'NotIn' must have a value defined",
		},
		{
			reason: "Gt takes one value", patch: set(requirements, `[{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["1", "2"]}]`),
			field: requirements, message: "requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value",
		},
		{reason: "there are no minValues", patch: set(requirements, `[{key: a, operator: Exists, minValues: 2}]`), field: requirements + "[0].minValues", message: "unknown field"},
		{reason: "an operator that does not exist", patch: set(requirements, `[{key: a, operator: Like, values: [b]}]`), field: requirements + "[0].operator", message: `"DoesNotExist"`},
		{reason: "a value no label can have", patch: set(requirements, `[{key: a, operator: In, values: ["b c"]}]`), field: requirements + "[0].values[0]", message: "should match"},
		{
			reason: "a key in Karpenter's domain", patch: set(requirements, `[{key: karpenter.sh/initialized, operator: Exists}]`),
			field: requirements + "[0].key", message: `label domain "karpenter.sh" is restricted`,
		},
		{
			reason: "the host's name", patch: set(requirements, `[{key: kubernetes.io/hostname, operator: In, values: [a]}]`),
			field: requirements + "[0].key", message: `label "kubernetes.io/hostname" is restricted`,
		},
		{
			reason: "a key in the provider's domain", patch: set(requirements, `[{key: karpenter.k8s.aws/instance-pods, operator: Exists}]`),
			field: requirements + "[0].key", message: `label domain "karpenter.k8s.aws" is restricted`,
		},
	}
}
