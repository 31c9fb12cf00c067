package admission

import "testing"

// minimalNodeClaim is the shortest NodeClaim there can be.
const minimalNodeClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: by-hand}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements: []
`

func nodeClaimRefusals() []refusal {
	return append(requirementRefusals("spec.requirements"), []refusal{
		{
			reason: "a claim never changes", before: set("spec.terminationGracePeriod", "1h"), patch: set("spec.terminationGracePeriod", "2h"),
			field: "spec", message: "spec is immutable",
		},
		{
			reason: "not even the class's name", before: set("spec.expireAfter", "720h"), patch: set("spec.nodeClassRef.name", "other"),
			field: "spec", message: "spec is immutable",
		},
		{reason: "a class without group", patch: set("spec.nodeClassRef.group", `""`), field: "spec.nodeClassRef.group", message: "group may not be empty"},
		{reason: "a class without kind", patch: set("spec.nodeClassRef.kind", `""`), field: "spec.nodeClassRef.kind", message: "kind may not be empty"},
		{reason: "a class without name", patch: set("spec.nodeClassRef.name", `""`), field: "spec.nodeClassRef.name", message: "name may not be empty"},
		{reason: "the class is needed", patch: set("spec.nodeClassRef", "null"), field: "spec.nodeClassRef", message: "Required value"},
		{reason: "a request is a quantity", patch: set("spec.resources.requests.cpu", `"some"`), field: "spec.resources.requests.cpu", message: "should match"},
		{reason: "an effect that does not exist", patch: set("spec.taints", `[{key: a, effect: Evict}]`), field: "spec.taints[0].effect", message: "NoExecute"},
		{reason: "expiry in days", patch: set("spec.expireAfter", "30d"), field: "spec.expireAfter", message: "should match"},
	}...)
}

func TestNodeClaimStatusOfOldKarpenterIsAccepted(t *testing.T) {
	t.Parallel()
	j := judges(t)["NodeClaim"]
	object := patched(t, minimalNodeClaim, `
status:
  conditions:
  - {type: Launched, status: "True", lastTransitionTime: "2024-01-01T00:00:00Z", reason: ""}
  - {type: Drifted, status: "False", lastTransitionTime: "2024-01-01T00:00:00Z"}
`)
	if errs := j.admit(object, nil); len(errs) > 0 {
		t.Errorf("refused: %v", errs.ToAggregate())
	}
}
