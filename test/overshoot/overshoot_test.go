// Package overshoot_test brings up pods that need a node each, beside many that may go anywhere, with a real kube-scheduler
// that is slow, and counts the nodes.
package overshoot_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 4)) }

const (
	// smallBesides is how many small pods come with each that needs a node; twelve would find room there.
	smallBesides = 10
	// schedulerQPS is a hundredth of what the kube-scheduler of other laboratories may ask for.
	schedulerQPS = 10
	// overshootMost is by how much the nodes may outnumber those that are needed.
	overshootMost = 1.03
)

// nodes is how many nodes are needed. The environment variable asks for more than can be waited for every time.
func nodes() int {
	if n, err := strconv.Atoi(os.Getenv("TENON_OVERSHOOT_PODS")); err == nil {
		return n
	}
	return 30
}

// TestNoMoreNodesThanNeeded has pods that cannot share a node planned first, and fills their nodes with small ones while
// the kube-scheduler is far behind.
func TestNoMoreNodesThanNeeded(t *testing.T) {
	need := nodes()
	w := world.Start(t, world.Options{BootDelay: 10 * time.Second, SchedulerQPS: schedulerQPS})
	w.Apply(pool)
	w.Apply(fmt.Sprintf(alone, need))
	w.Await("a node for each that needs one", 3*time.Minute, func() (bool, string) {
		made := len(w.Claims())
		return made >= need, fmt.Sprintf("%d claims", made)
	})
	w.Apply(fmt.Sprintf(small, smallBesides*need))
	w.AwaitRunning("overshoot", (1+smallBesides)*need, time.Duration(1+need/30)*4*time.Minute)
	made := len(w.Claims())
	t.Logf("%d claims for %d pods that need a node each, beside %d", made, need, smallBesides*need)
	if float64(made) > max(overshootMost*float64(need), float64(need+1)) {
		t.Errorf("%d claims, and %d nodes are needed", made, need)
	}
}

// No node is taken away meanwhile, so that those at the end are those there ever were.
var pool = strings.TrimSpace(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1h}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c5.large, c6i.large]}
`)

var alone = strings.TrimSpace(`
apiVersion: v1
kind: Namespace
metadata: {name: overshoot}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: overshoot, name: alone}
spec:
  replicas: %d
  selector: {matchLabels: {app: alone}}
  template:
    metadata: {labels: {app: alone}}
    spec:
      terminationGracePeriodSeconds: 1
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: alone}}}
      containers:
      - name: app
        image: app
        resources: {requests: {cpu: 700m, memory: 512Mi}}
`)

var small = strings.TrimSpace(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: overshoot, name: small}
spec:
  replicas: %d
  selector: {matchLabels: {app: small}}
  template:
    metadata: {labels: {app: small}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: app
        resources: {requests: {cpu: 100m, memory: 100Mi}}
`)
