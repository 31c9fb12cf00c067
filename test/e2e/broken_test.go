package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/test/world"
)

// brokenManifests: a mistake is reported by the API server at once, or by a condition that names the field, and the pods
// that wait for a broken NodePool get an Event.
func brokenManifests(t *testing.T, w *world.World) {
	for _, row := range []struct{ reason, manifest, want string }{
		{reason: "In takes at least one value",
			manifest: nodePool("broken", "0s", []string{"{key: kubernetes.io/arch, operator: In, values: []}"}), want: "operator 'In' must have a value defined"},
		{reason: "there are three consolidation policies",
			manifest: strings.Replace(nodePool("broken", "0s", types("m5.large")), "WhenEmpty", "Sometimes", 1),
			want:     "spec.disruption.consolidationPolicy: Unsupported value"},
		{reason: "labels of the domain karpenter.sh are not the user's",
			manifest: nodePool("broken", "0s", []string{"{key: karpenter.sh/shard, operator: Exists}"}), want: "karpenter.sh"},
		{reason: "a budget's schedule needs a duration",
			manifest: strings.Replace(nodePool("broken", "0s", types("m5.large")), `nodes: "100%"`, `nodes: "1", schedule: "@daily"`, 1),
			want:     "'schedule' must be set with 'duration'"},
		{reason: "a duration is written with units", manifest: nodePool("broken", "0s", types("m5.large"), "expireAfter: 30"),
			want: "spec.template.spec.expireAfter"},
		{reason: "a class needs a role or an instance profile", manifest: nodeClass("broken", "tags: {a: b}", "karpenter.sh/discovery: x"),
			want: "must specify exactly one of ['role', 'instanceProfile']"},
		{reason: "a class may not tag what marks instances as the cluster's",
			manifest: nodeClass("broken", `role: r, tags: {karpenter.sh/nodepool: mine}`, "karpenter.sh/discovery: x"), want: "karpenter.sh/nodepool"},
	} {
		if err := w.TryApply(row.manifest); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: the API server says %v, want it to say %q", row.reason, err, row.want)
		}
	}
	for _, row := range []struct{ reason, name, manifest, kind, condition, want string }{
		{reason: "no two taints have one key and effect", name: "twice-tainted", manifest: nodePool("twice-tainted", "0s", types("m5.large"), "taints: [{key: a, effect: NoSchedule}]", "startupTaints: [{key: a, effect: NoSchedule}]"),
			kind: "nodepool", condition: "ValidationSucceeded", want: "spec.template.spec.startupTaints[0]"},
		{reason: "nobody knows such an hour", name: "bad-cron", manifest: strings.Replace(nodePool("bad-cron", "0s", types("m5.large")), `nodes: "100%"`, `nodes: "1", schedule: "0 25 * * *", duration: 1h`, 1),
			kind: "nodepool", condition: "ValidationSucceeded", want: "spec.disruption.budgets[0].schedule"},
		{reason: "the class does not exist", name: "classless", manifest: strings.Replace(nodePool("classless", "0s", types("m5.large")), "name: default}", "name: nowhere}", 1),
			kind: "nodepool", condition: "NodeClassReady", want: "nowhere"},
		{reason: "no subnet has the tags", name: "no-subnets", manifest: nodeClass("no-subnets", "role: r", "no: such"),
			kind: "ec2nodeclass", condition: "SubnetsReady", want: ""},
	} {
		w.Apply(row.manifest)
		w.Await(row.reason, time.Minute, func() (bool, string) {
			said := kubectl(t, w, "get", row.kind, row.name, "-o", `jsonpath={.status.conditions[?(@.type=="`+row.condition+`")]} {.status.conditions[?(@.type=="Ready")].status}`)
			return strings.Contains(said, `"status":"False"`) && strings.Contains(said, row.want) && strings.HasSuffix(said, " False"), said
		})
	}
	w.Apply(deployment("broken", "app", 1, small, of("twice-tainted")))
	w.Await("the pod is told", 2*time.Minute, func() (bool, string) {
		events := kubectl(t, w, "get", "events", "-n", "broken", "-o", "jsonpath={range .items[?(@.source.component==\"tenon\")]}{.reason}: {.message}{\"\\n\"}{end}")
		return strings.Contains(events, "twice-tainted"), events
	})
	kubectl(t, w, "delete", "deployment", "-n", "broken", "app")
	kubectl(t, w, "delete", "nodepool", "twice-tainted", "bad-cron", "classless")
	kubectl(t, w, "delete", "ec2nodeclass", "no-subnets", "--timeout=60s")
}

// nodeClass returns the manifest of an EC2NodeClass with further fields and the tag of its subnets and security groups.
func nodeClass(name, fields, tag string) string {
	return `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: ` + name + `}
spec: {amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {"` + strings.Replace(tag, ": ", `": "`, 1) + `"}}], securityGroupSelectorTerms: [{tags: {"` + strings.Replace(tag, ": ", `": "`, 1) + `"}}], ` + fields + `}
`
}
