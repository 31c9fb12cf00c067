package admission

// minimalNodePool is the shortest NodePool there can be.
const minimalNodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
`

func nodePoolRefusals() []refusal {
	const (
		spec         = "spec.template.spec"
		requirements = spec + ".requirements"
		labels       = "spec.template.metadata.labels"
		budgets      = "spec.disruption.budgets"
	)
	return append(requirementRefusals(requirements), []refusal{
		{
			reason: "a pool does not become static",
			before: set("spec.weight", "null"), patch: set("spec.replicas", "3"),
			field: "spec", message: "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
		},
		{
			reason: "a static pool does not become dynamic",
			before: set("spec.replicas", "3"), patch: set("spec.weight", "null"),
			field: "spec", message: "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
		},
		{
			reason: "a static pool is limited by nodes only", patch: set("spec", `{replicas: 3, limits: {cpu: "10"}}`),
			field: "spec", message: "only 'limits.nodes' is supported on static NodePools",
		},
		{
			reason: "a static pool has no weight", patch: set("spec", `{replicas: 3, weight: 10}`),
			field: "spec", message: "'weight' is not supported on static NodePools",
		},
		{reason: "weight is bounded below", patch: set("spec.weight", "0"), field: "spec.weight", message: "greater than or equal to 1"},
		{reason: "weight is bounded above", patch: set("spec.weight", "101"), field: "spec.weight", message: "less than or equal to 100"},
		{reason: "replicas are not negative", patch: set("spec.replicas", "-1"), field: "spec.replicas", message: "greater than or equal to 0"},
		{reason: "a limit is a quantity", patch: set("spec.limits.cpu", `"many"`), field: "spec.limits.cpu", message: "should match"},
		{reason: "there is no such field", patch: set("spec.providerRef", "{}"), field: "spec.providerRef", message: "unknown field"},
		{reason: "the template is needed", patch: set("spec.template", "null"), field: "spec.template", message: "Required value"},
		{reason: "requirements are needed, be it none", patch: set(requirements, "null"), field: requirements, message: "Required value"},

		{
			reason: "a schedule needs a duration", patch: set(budgets, `[{nodes: "1", schedule: "@daily"}]`),
			field: budgets, message: "'schedule' must be set with 'duration'",
		},
		{reason: "no more than all", patch: set(budgets, `[{nodes: "101%"}]`), field: budgets + "[0].nodes", message: "should match"},
		{reason: "no fractions", patch: set(budgets, `[{nodes: "1.5"}]`), field: budgets + "[0].nodes", message: "should match"},
		{reason: "a schedule of too few fields", patch: set(budgets, `[{nodes: "1", schedule: "* * *", duration: 1h}]`), field: budgets + "[0].schedule", message: "should match"},
		{reason: "a duration in seconds", patch: set(budgets, `[{nodes: "1", schedule: "@daily", duration: 90s}]`), field: budgets + "[0].duration", message: "should match"},
		{reason: "a reason that does not exist", patch: set(budgets, `[{nodes: "1", reasons: [Expired]}]`), field: budgets + "[0].reasons[0]", message: `supported values: "Underutilized", "Empty", "Drifted"`},
		{reason: "the same reason twice", patch: set(budgets, `[{nodes: "1", reasons: [Empty, Empty]}]`), field: budgets + "[0].reasons[1]", message: "Duplicate value"},
		{reason: "a policy that does not exist", patch: set("spec.disruption.consolidationPolicy", "Always"), field: "spec.disruption.consolidationPolicy", message: "WhenEmptyOrUnderutilized"},
		{reason: "a word that is not Never", patch: set("spec.disruption.consolidateAfter", "Always"), field: "spec.disruption.consolidateAfter", message: "should match"},
		{reason: "expiry in days", patch: set(spec+".expireAfter", "30d"), field: spec + ".expireAfter", message: "should match"},
		{reason: "no bound on drains is not Never", patch: set(spec+".terminationGracePeriod", "Never"), field: spec + ".terminationGracePeriod", message: "should match"},

		{
			reason: "a label in Karpenter's domain", patch: set(labels, `{karpenter.sh/team: web}`),
			field: labels, message: `label domain "karpenter.sh" is restricted`,
		},
		{
			reason: "the label with the pool's name", patch: set(labels, `{karpenter.sh/nodepool: web}`),
			field: labels, message: `label "karpenter.sh/nodepool" is restricted`,
		},
		{
			reason: "the label with the host's name", patch: set(labels, `{kubernetes.io/hostname: web}`),
			field: labels, message: `label "kubernetes.io/hostname" is restricted`,
		},
		{
			reason: "a label in the provider's domain", patch: set(labels, `{karpenter.k8s.aws/team: web}`),
			field: labels, message: `label domain "karpenter.k8s.aws" is restricted`,
		},
		{reason: "a label value with a space", patch: set(labels, `{team: "a b"}`), field: labels + ".team", message: "should match"},

		{
			reason: "a requirement on the pool's name", patch: set(requirements, `[{key: karpenter.sh/nodepool, operator: In, values: [a]}]`),
			field: requirements + "[0].key", message: `label "karpenter.sh/nodepool" is restricted`,
		},

		{
			reason: "the class's group stays", before: set("spec.weight", "1"), patch: set(spec+".nodeClassRef.group", "other"),
			field: spec + ".nodeClassRef", message: "nodeClassRef.group is immutable",
		},
		{
			reason: "the class's kind stays", before: set("spec.weight", "1"), patch: set(spec+".nodeClassRef.kind", "Other"),
			field: spec + ".nodeClassRef", message: "nodeClassRef.kind is immutable",
		},
		{reason: "a class without group", patch: set(spec+".nodeClassRef.group", `""`), field: spec + ".nodeClassRef.group", message: "group may not be empty"},
		{reason: "a class without kind", patch: set(spec+".nodeClassRef.kind", `""`), field: spec + ".nodeClassRef.kind", message: "kind may not be empty"},
		{reason: "a class without name", patch: set(spec+".nodeClassRef.name", `""`), field: spec + ".nodeClassRef.name", message: "name may not be empty"},
		{reason: "a group with a version", patch: set(spec+".nodeClassRef.group", "karpenter.k8s.aws/v1"), field: spec + ".nodeClassRef.group", message: "should match"},

		{reason: "a taint without key", patch: set(spec+".taints", `[{key: "", effect: NoSchedule}]`), field: spec + ".taints[0].key", message: "at least 1 chars"},
		{reason: "a taint with a bad key", patch: set(spec+".startupTaints", `[{key: "a b", effect: NoSchedule}]`), field: spec + ".startupTaints[0].key", message: "should match"},
		{reason: "an effect that does not exist", patch: set(spec+".taints", `[{key: a, effect: Evict}]`), field: spec + ".taints[0].effect", message: "NoExecute"},
	}...)
}

// requirementRefusals are the refusals that NodePools and NodeClaims have in common.
func requirementRefusals(path string) []refusal {
	return []refusal{
		{
			reason: "In needs a value", patch: set(path, `[{key: kubernetes.io/arch, operator: In, values: []}]`),
			field: path, message: "requirements with operator 'In' must have a value defined",
		},
		{
			reason: "In needs the field, too", patch: set(path, `[{key: kubernetes.io/arch, operator: In}]`),
			field: path, message: "requirements with operator 'In' must have a value defined",
		},
		{
			reason: "Gt takes one value", patch: set(path, `[{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["1", "2"]}]`),
			field: path, message: "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
		},
		{
			reason: "Lte takes a number", patch: set(path, `[{key: karpenter.k8s.aws/instance-cpu, operator: Lte, values: ["many"]}]`),
			field: path, message: "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
		},
		{
			reason: "minValues are at most the values", patch: set(path, `[{key: kubernetes.io/arch, operator: In, values: [amd64], minValues: 2}]`),
			field: path, message: "requirements with 'minValues' must have at least that many values specified in the 'values' field",
		},
		{reason: "minValues are at most 50", patch: set(path, `[{key: a, operator: Exists, minValues: 51}]`), field: path + "[0].minValues", message: "less than or equal to 50"},
		{reason: "an operator that does not exist", patch: set(path, `[{key: a, operator: Like, values: [b]}]`), field: path + "[0].operator", message: `"DoesNotExist"`},
		{reason: "a value no label can have", patch: set(path, `[{key: a, operator: In, values: ["b c"]}]`), field: path + "[0].values[0]", message: "should match"},
		{reason: "a key no label can have", patch: set(path, `[{key: "a b", operator: Exists}]`), field: path + "[0].key", message: "should match"},
		{
			reason: "a key in Karpenter's domain", patch: set(path, `[{key: karpenter.sh/initialized, operator: Exists}]`),
			field: path + "[0].key", message: `label domain "karpenter.sh" is restricted`,
		},
		{
			reason: "the host's name", patch: set(path, `[{key: kubernetes.io/hostname, operator: In, values: [a]}]`),
			field: path + "[0].key", message: `label "kubernetes.io/hostname" is restricted`,
		},
		{
			reason: "a key in the provider's domain", patch: set(path, `[{key: karpenter.k8s.aws/instance-pods, operator: Exists}]`),
			field: path + "[0].key", message: `label domain "karpenter.k8s.aws" is restricted`,
		},
	}
}
