// Package why_test asks a running laboratory why pods have no node, as people do.
package why_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// pods are pods that are each pending, or not, for a different reason.
const pods = `
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: served}
spec:
  containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m}}}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: impossible}
spec:
  containers: [{name: c, image: nginx, resources: {requests: {cpu: 5k}}}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: gated}
spec:
  schedulingGates: [{name: example.com/approval}]
  containers: [{name: c, image: nginx}]
---
# No scheduler of that name runs, so nobody ever judges it.
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: unjudged}
spec:
  schedulerName: nobody
  containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m}}}]
`

// story is the part of `tenon why pod -o json` that the test reads.
type story struct {
	State, Summary, Node, NodeClaim, InstanceType, Verdict string
	PricePerHour                                           float64
	Reasons                                                []struct{ NodePool, Message string }
}

func TestWhyPod(t *testing.T) {
	t.Parallel()
	hidden := newSecrets(t)
	page := watched{freeAddress(t), hidden.never["the page's token"]}
	traces := newReceiver(t)
	w := world.Start(t, world.Options{Codec: true, WorkerEnv: append(hidden.env(t), "TENON_UI_ADDRESS="+page.address, "TENON_OTLP_ENDPOINT="+traces.address)})
	prometheus := w.Prometheus(alertRules(t))
	w.Apply(pods)
	w.Await("the pod that can be served runs", 3*time.Minute, func() (bool, string) {
		var pod corev1.Pod
		if err := w.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "served"}, &pod); err != nil {
			return false, err.Error()
		}
		return pod.Spec.NodeName != "", string(pod.Status.Phase)
	})
	why := func(pod string) story {
		out, err := w.Tenon("why", "pod", "default/"+pod, "-o", "json")
		if err != nil {
			t.Fatalf("tenon why pod %s: %v\n%s", pod, err, out)
		}
		var s story
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		t.Logf("%s %s %v", pod, s.Summary, s.Reasons)
		return s
	}

	served := why("served")
	if s := served; s.State != "Bound" || s.Node == "" || s.NodeClaim == "" || s.InstanceType == "" || s.PricePerHour <= 0 {
		t.Errorf("a bound pod is to be told its node, claim, type and price: %+v", s)
	}
	if s := why("gated"); s.State != "Gated" || !strings.Contains(s.Summary, "example.com/approval") {
		t.Errorf("a gated pod is to be told its gate: %+v", s)
	}
	if s := why("unjudged"); s.State != "Pending" || !strings.Contains(s.Summary, "has not judged it yet") || s.Verdict != "Fits" && s.Verdict != "Launch" {
		t.Errorf("a pod that nobody has judged is to be told so, and what would become of it: %+v", s)
	}
	impossible := why("impossible")
	if impossible.Verdict != "Unplaced" || len(impossible.Reasons) != 1 || impossible.Reasons[0].NodePool != "default" || !strings.Contains(impossible.Reasons[0].Message, "cpu") {
		t.Fatalf("a pod that fits nowhere is to be told why, for each NodePool: %+v", impossible)
	}
	if out, err := w.Tenon("why", "pod", "default/none"); err == nil || !strings.Contains(out, "there is no pod default/none") {
		t.Errorf("a wrong name is to be said to be one: %v\n%s", err, out)
	}

	w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).ProvisioningID(), "asked")
	listsAndHistories(t, w, served, impossible)
	supportBundle(t, w, served)
	watchable(t, w, page, served, impossible)
	traced(t, w, traces, served)
	onTheScreen(t, w, served, impossible)

	// People with kubectl read the same sentence.
	w.Await("an Event says why", time.Minute, func() (bool, string) {
		var events corev1.EventList
		if err := w.List(w.Context(), &events, client.InNamespace("default")); err != nil {
			return false, err.Error()
		}
		said := 0
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "impossible" && e.Source.Component == "tenon" && strings.Contains(e.Message, impossible.Reasons[0].Message) {
				said += int(max(e.Count, 1))
			}
		}
		return said == 1, "said several times, or never"
	})

	// So does tenon plan for a dump of the cluster.
	dump, err := w.Kubectl("get", "nodes,nodepools,ec2nodeclasses,nodeclaims,daemonsets,pods", "--all-namespaces", "-o", "yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, dump)
	}
	plan := w.Command("plan", "-f", "-", "-o", "json")
	plan.Stdin = strings.NewReader(dump)
	out, err := plan.Output()
	if err != nil {
		t.Fatalf("tenon plan: %v\n%s", err, dump)
	}
	var planned struct {
		Nodes    []struct{ Name string }
		Unplaced []struct {
			Pod     string
			Reasons []string
		}
	}
	if err := json.Unmarshal(out, &planned); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	left := map[string]string{}
	for _, u := range planned.Unplaced {
		left[u.Pod] = strings.Join(u.Reasons, "; ")
	}
	if want := "NodePool default: " + impossible.Reasons[0].Message; left["default/impossible"] != want {
		t.Errorf("tenon plan says %q of the pod that tenon why says %q of", left["default/impossible"], want)
	}
	if len(left) != 2 || left["default/gated"] == "" || len(planned.Nodes) != 0 {
		t.Errorf("the other pods have a node, or fit on one: %s", out)
	}
	classExcludes(t, w, why)
	alertsFire(t, w, prometheus, served)
	metricsAreShown(t, w, prometheus)
	secretsStayHidden(t, w, page, hidden)
}

// classExcludes asks for an instance type that the NodePool allows and its class excludes: tenon why and the Event name the
// field of the class.
func classExcludes(t *testing.T, w *world.World, why func(string) story) {
	t.Helper()
	w.Apply(strings.ReplaceAll(excluding, "CLUSTER", w.Lab.Cluster()))
	const want = "types such as m4.large have no Nitro hypervisor, which spec.connectionTracking needs (EC2NodeClass tracking)"
	w.Await("tenon why and an Event to name the field", time.Minute, func() (bool, string) {
		said := ""
		for _, reason := range why("excluded").Reasons {
			if reason.NodePool == "tracking" {
				said = reason.Message
			}
		}
		var events corev1.EventList
		if err := w.List(w.Context(), &events, client.InNamespace("default")); err != nil {
			return false, err.Error()
		}
		told := slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Name == "excluded" && e.Reason == "FailedScheduling" && strings.Contains(e.Message, want)
		})
		return told && strings.Contains(said, want), said
	})
}

// excluding is a NodePool with a class that excludes one of its two instance types, and a pod that asks for that type.
const excluding = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: tracking}
spec:
  role: KarpenterNodeRole-CLUSTER
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]
  connectionTracking: {udpTimeout: 45}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: tracking}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: tracking}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m4.large, m5.large]}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: excluded}
spec:
  nodeSelector: {karpenter.sh/nodepool: tracking, node.kubernetes.io/instance-type: m4.large}
  containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m}}}]
`
