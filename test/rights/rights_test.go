// Package rights_test compares what the worker is allowed to do in a cluster with what it does there.
package rights_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/test/world"
)

// rare are permissions that this test does not see used, with their purpose.
var rare = map[string]string{
	"delete nodes":      "a Node that joined and was never registered, or whose claim was removed by force, belongs to nobody else",
	"patch pods/status": "a pod is nominated to its node only where the kube-scheduler has not bound it already",
	"patch events":      "an event that is said again within ten minutes is counted up",
}

// scene has pods that a budget blocks, one pod that no machine fits, and room that is kept free.
const scene = `
apiVersion: v1
kind: Namespace
metadata: {name: rights}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: rights, name: app}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: app}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: rights, name: app}
spec:
  replicas: 3
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: app, resources: {requests: {cpu: 500m}}}]
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {namespace: rights, name: spare}
spec: {replicas: 1, scalableRef: {apiGroup: apps, kind: Deployment, name: app}}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: discount}
spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}], priceAdjustment: "-1%"}
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: misfit}
spec:
  nodeSelector: {kubernetes.io/arch: abacus}
  containers: [{name: app, image: app}]
`

// TestEveryRightIsUsed plays a node's whole life, while the worker has the permissions that the chart gives it and the API
// server records its requests: no write is refused, and the worker has no permission for a write that it never makes.
func TestEveryRightIsUsed(t *testing.T) {
	t.Parallel()
	w := world.Start(t, world.Options{Worker: []string{"--feature-gates=NodeOverlay=true"}})
	w.Apply(scene)
	w.AwaitRunning("rights", 3, 3*time.Minute)
	node := w.Pods("rights")[0].Spec.NodeName
	// The drain first tries to evict each pod, and deletes it at the deadline although a budget blocks it.
	if out, err := w.Tenon("drain", node, "--deadline", "20s"); err != nil {
		t.Fatalf("tenon drain: %v\n%s", err, out)
	}

	roles, err := deploy.WorkerRoles("tenon", rbacv1.Subject{}, "kube-system", "karpenter-leader-election", false)
	if err != nil {
		t.Fatal(err)
	}
	var rights []string
	for _, rule := range slices.Concat(roles.ClusterRole.Rules, roles.Role.Rules, roles.PauseRole.Rules) {
		for _, verb := range rule.Verbs {
			if verb == "get" || verb == "list" || verb == "watch" {
				continue
			}
			for _, resource := range rule.Resources {
				rights = append(rights, verb+" "+resource)
			}
		}
	}
	w.Await("every right to be used", 2*time.Minute, func() (bool, string) {
		used := map[string]bool{}
		for _, write := range w.Writes() {
			right := write.Verb + " " + write.Resource
			if write.Code == 403 {
				t.Fatalf("the worker may not %s %s, and tried", right, write.Name)
			}
			used[right] = true
		}
		unused := slices.DeleteFunc(slices.Clone(rights), func(right string) bool { return used[right] || rare[right] != "" })
		return len(unused) == 0, fmt.Sprintf("the chart grants rights that are never used: %s", strings.Join(unused, ", "))
	})
	for right := range rare {
		if !slices.Contains(rights, right) {
			t.Errorf("%q is listed as rarely used, but not granted", right)
		}
	}
}
