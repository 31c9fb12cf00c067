package admission

// minimalCapacityBuffer is the shortest CapacityBuffer that asks for something.
const minimalCapacityBuffer = `
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {namespace: default, name: spare}
spec:
  podTemplateRef: {name: web}
  replicas: 3
`

func capacityBufferRefusals() []refusal {
	return []refusal{
		{
			reason: "a template alone does not say how many pods", patch: set("spec.replicas", "null"),
			field: "spec", message: "If podTemplateRef is set, replicas or limits must also be set",
		},
		{
			reason: "a percentage of a template is nothing", patch: set("spec", `{replicas: null, percentage: 10}`),
			field: "spec", message: "If podTemplateRef is set, replicas or limits must also be set",
		},
		{
			reason: "pods of one shape only", patch: set("spec.scalableRef", `{apiGroup: apps, kind: Deployment, name: web}`),
			field: "spec", message: "You must define either PodTemplateRef or ScalableRef, but not both",
		},
		{reason: "replicas are not negative", patch: set("spec.replicas", "-1"), field: "spec.replicas", message: "greater than or equal to 0"},
		{reason: "a percentage is not negative", patch: set("spec.percentage", "-1"), field: "spec.percentage", message: "greater than or equal to 0"},
		{reason: "a template has a name", patch: set("spec.podTemplateRef.name", `""`), field: "spec.podTemplateRef.name", message: "at least 1 chars"},
		{
			reason: "a scalable has a kind", patch: set("spec", `{podTemplateRef: null, scalableRef: {apiGroup: apps, name: web}}`),
			field: "spec.scalableRef.kind", message: "Required value",
		},
		{
			reason: "a scalable has a name", patch: set("spec", `{podTemplateRef: null, scalableRef: {apiGroup: apps, kind: Deployment, name: ""}}`),
			field: "spec.scalableRef.name", message: "at least 1 chars",
		},
		{reason: "a limit is a quantity", patch: set("spec.limits.cpu", `"many"`), field: "spec.limits.cpu", message: "should match"},
		{reason: "there is no such field", patch: set("spec.minReplicas", "1"), field: "spec.minReplicas", message: "unknown field"},
	}
}
