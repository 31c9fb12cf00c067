package why_test

import (
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	sdk "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// soon makes times short in an alert rule: how long its condition has to hold, over what it is averaged, and after how many
// seconds something is late.
var soon = []struct {
	long  *regexp.Regexp
	short string
}{
	{regexp.MustCompile(`for: \d+m`), "for: 0s"}, {regexp.MustCompile(`\[10m\]`), "[1m]"}, {regexp.MustCompile(`_seconds\) > (60|3600)`), "_seconds) > 15"},
	{regexp.MustCompile(`> 0\.1\b`), "> 0.01"},
}

// alertRules are the chart's, with short times.
func alertRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/chart/alerts/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := string(text)
	for _, s := range soon {
		if !s.long.MatchString(rules) {
			t.Fatalf("no alert has the time %s", s.long)
		}
		rules = s.long.ReplaceAllString(rules, s.short)
	}
	return rules
}

// wanting is a pod for which a node has to be launched.
const wanting = `
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: wanting}
spec:
  containers: [{name: c, image: nginx, resources: {requests: {cpu: 30}}}]
`

// alertsFire causes what the chart's alerts are about, on a cluster with a node that serves, and has a real Prometheus fire
// them. Each fault is mended afterwards. promtool tests all alerts, those that nobody can cause within a minute too.
func alertsFire(t *testing.T, w *world.World, prometheus *world.Prometheus, served story) {
	t.Helper()
	kubectl := func(args ...string) {
		t.Helper()
		if out, err := w.Kubectl(args...); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	tenon := func(args ...string) {
		t.Helper()
		if out, err := w.Tenon(args...); err != nil {
			t.Fatalf("tenon %v: %v\n%s", args, err, out)
		}
	}
	signal := func(component lab.Component, signal syscall.Signal) {
		t.Helper()
		if err := w.Lab.Kill(component, signal); err != nil {
			t.Fatal(err)
		}
	}
	fires := func(alert string) {
		t.Helper()
		began := time.Now()
		w.Await("the alert "+alert, 3*time.Minute, func() (bool, string) {
			series, err := prometheus.Query(`ALERTS{alertstate="firing", alertname="` + alert + `"}`)
			if err != nil {
				return false, err.Error()
			}
			return len(series) > 0, "it does not fire"
		})
		t.Logf("%s fires after %s", alert, time.Since(began).Round(time.Second))
	}

	fires("TenonPodsUnschedulable") // the pod impossible

	kubectl("patch", "nodepool", "default", "--type=merge", "--patch", `{"spec":{"limits":{"nodes":"1"}}}`)
	fires("TenonNodePoolNearLimit")
	kubectl("patch", "nodepool", "default", "--type=merge", "--patch", `{"spec":{"limits":{"nodes":"100"}}}`)

	kubectl("annotate", "nodepool", "default", "tenon.sh/rollout=1,100%")
	kubectl("wait", "--for=condition=Rollout", "nodepool/default", "--timeout=2m")
	tenon("rollout", "stop", "default", "--reason", "to see the alert")
	fires("TenonRolloutStopped")
	kubectl("annotate", "nodepool", "default", "tenon.sh/rollout-", "tenon.sh/rollout-order-")

	kubectl("annotate", "pod", "served", "karpenter.sh/do-not-disrupt=true")
	tenon("drain", served.Node, "--keep")
	fires("TenonDrainBlocked")
	tenon("drain", "cancel", served.Node)
	kubectl("annotate", "pod", "served", "karpenter.sh/do-not-disrupt-")

	// No build knows this workflow, so its tasks fail as those of one whose history does not fit.
	unknown, err := w.Temporal.ExecuteWorkflow(w.Context(), sdk.StartWorkflowOptions{ID: w.Lab.Cluster() + "/unknown", TaskQueue: workflows.Cluster(w.Lab.Cluster()).TaskQueue()}, "Unknown")
	if err != nil {
		t.Fatal(err)
	}
	fires("TenonWorkflowTasksFail")
	if err := w.Temporal.TerminateWorkflow(w.Context(), unknown.GetID(), "", "the alert has been seen"); err != nil {
		t.Fatal(err)
	}

	w.Faults(ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "CreateFleet", Code: "UnauthorizedOperation"}}})
	w.Apply(wanting)
	fires("TenonCloudErrors")
	kubectl("delete", "pod", "wanting", "--wait=false")
	w.Faults(ec2sim.Faults{})

	signal(lab.Temporal, syscall.SIGSTOP)
	fires("TenonTemporalAway")
	signal(lab.Temporal, syscall.SIGCONT)

	signal(lab.APIServer, syscall.SIGSTOP)
	fires("TenonMirrorStale")
	fires("TenonNobodyActs")
	signal(lab.APIServer, syscall.SIGCONT)
	w.Await("the worker acts again", 3*time.Minute, func() (bool, string) {
		series, err := prometheus.Query(`ALERTS{alertstate="firing", alertname=~"TenonNobodyActs|TenonMirrorStale|TenonTemporalAway"}`)
		if err != nil || len(series) > 0 {
			return false, "an alert fires still"
		}
		var node corev1.Node
		err = w.Get(w.Context(), client.ObjectKey{Name: served.Node}, &node)
		return err == nil && !node.Spec.Unschedulable, "the node is closed"
	})
}
