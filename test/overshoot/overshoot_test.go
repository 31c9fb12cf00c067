// Package overshoot_test runs pods some of which need a place that other pods could take, with a slow real kube-scheduler,
// and counts the nodes.
package overshoot_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 4)) }

const (
	// smallBesides is the number of small pods for each choosy one.
	smallBesides = 7
	// schedulerQPS is a hundredth of the kube-scheduler's request rate in other laboratories.
	schedulerQPS = 10
	// maxOvershoot is by how much the nodes may outnumber those of the first plan; where there are few, one more node is
	// always allowed.
	maxOvershoot = 1.03
)

// choosy returns the number of choosy pods in each row. The environment variable sets more than fits the time of a regular
// run.
func choosy() int {
	if n, err := strconv.Atoi(os.Getenv("TENON_OVERSHOOT_PODS")); err == nil {
		return n
	}
	return 24
}

type row struct{ name, reason, requests, spec string }

// rows are the workloads, each with its own NodePool. Their pods may run in few places only.
var rows = []row{
	{name: "alone", reason: "pods that need a node each", requests: "{cpu: 700m, memory: 512Mi}",
		spec: "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: alone}}}]}}"},
	{name: "hosts", reason: "pods that are spread over nodes", requests: "{cpu: 700m, memory: 512Mi}", spec: spreadOver("kubernetes.io/hostname", "hosts")},
	{name: "zones", reason: "pods that are spread over zones", requests: "{cpu: 1500m, memory: 2Gi}", spec: spreadOver("topology.kubernetes.io/zone", "zones")},
	{name: "port", reason: "pods that need a port of their node", requests: "{cpu: 700m, memory: 512Mi}", spec: ""},
	{name: "volume", reason: "pods whose volumes are in one zone or another", requests: "{cpu: 1500m, memory: 2Gi}", spec: ""},
	{name: "large", reason: "pods that fill most of a node", requests: "{cpu: 3500m, memory: 4Gi}", spec: ""},
}

func spreadOver(key, app string) string {
	return fmt.Sprintf("topologySpreadConstraints: [{maxSkew: 1, topologyKey: %s, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: %s}}}]", key, app)
}

// TestNoMoreNodesThanPlanned compares the claims that are made while the kube-scheduler is far behind with the nodes of one
// plan of the same manifests.
func TestNoMoreNodesThanPlanned(t *testing.T) {
	size := choosy()
	w := world.Start(t, world.Options{BootDelay: 10 * time.Second, SchedulerQPS: schedulerQPS})
	var pools, workloads strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&pools, pool, row.name)
		workloads.WriteString(row.objects(size))
	}
	planned := plannedNodes(w, pools.String(), workloads.String())
	w.Apply(pools.String())
	w.Apply(namespace)
	w.Apply(workloads.String())
	w.AwaitRunning("overshoot", len(rows)*(1+smallBesides)*size, time.Duration(1+size/30)*10*time.Minute)
	made := map[string]int{}
	for _, claim := range w.Claims() {
		made[claim.Labels[karpv1.NodePoolLabelKey]]++
	}
	for _, row := range rows {
		t.Logf("%s: %d claims, and %d planned at once", row.reason, made[row.name], planned[row.name])
		if bound := max(maxOvershoot*float64(planned[row.name]), float64(planned[row.name]+1)); float64(made[row.name]) > bound {
			t.Errorf("%s: %d claims, and a plan of all pods at once needs %d", row.reason, made[row.name], planned[row.name])
		}
	}
}

// plannedNodes returns how many nodes of each NodePool a plan of all pods at once has.
func plannedNodes(w *world.World, pools, workloads string) map[string]int {
	w.T.Helper()
	class, err := w.Kubectl("get", "ec2nodeclass", "default", "-o", "yaml")
	if err != nil {
		w.T.Fatal(err)
	}
	file := filepath.Join(w.T.TempDir(), "overshoot.yaml")
	if err := os.WriteFile(file, []byte(class+"\n---\n"+pools+namespace+workloads), 0o600); err != nil {
		w.T.Fatal(err)
	}
	cmd := w.Command("plan", "-f", file, "-o", "json")
	out, err := cmd.Output()
	if err != nil {
		w.T.Fatalf("%s: %v", cmd, err)
	}
	var planned struct {
		Nodes []struct {
			NodePool string `json:"nodePool"`
		} `json:"nodes"`
		Unplaced []json.RawMessage `json:"unplaced"`
	}
	if err := json.Unmarshal(out, &planned); err != nil || len(planned.Unplaced) > 0 {
		w.T.Fatalf("%s: %v, unplaced: %s", cmd, err, planned.Unplaced)
	}
	nodes := map[string]int{}
	for _, node := range planned.Nodes {
		nodes[node.NodePool]++
	}
	return nodes
}

// objects returns the manifests of a row: the choosy pods, and the small ones.
func (r row) objects(size int) string {
	var objects strings.Builder
	choosy := workload{kind: "Deployment", row: r.name, app: r.name, replicas: size, requests: r.requests, spec: r.spec}
	switch r.name {
	case "volume":
		for i := range size {
			fmt.Fprintf(&objects, volume, i, []string{"a", "b", "c"}[i%3])
		}
		choosy.kind, choosy.further, choosy.container = "StatefulSet", volumeTemplate, ", volumeMounts: [{name: data, mountPath: /data}]"
	case "port":
		choosy.container = ", ports: [{containerPort: 8080, hostPort: 8080}]"
	}
	small := workload{kind: "Deployment", row: r.name, app: r.name + "-small", replicas: smallBesides * size, requests: "{cpu: 100m, memory: 100Mi}"}
	return objects.String() + choosy.manifest() + small.manifest()
}

// No node is removed meanwhile, so the nodes at the end are all the nodes there ever were.
const pool = `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1h}
  template:
    metadata: {labels: {row: %[1]s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [c5, c6i, m5, m6i]}
      - {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ["17"]}
`

const volume = `
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: overshoot, name: data-volume-%[1]d}, spec: {storageClassName: "", volumeName: volume-%[1]d, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: volume-%[1]d}, spec: {storageClassName: "", capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain,
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: overshoot, name: data-volume-%[1]d}, csi: {driver: disk.example.com, volumeHandle: vol-%[1]d},
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1%[2]s]}]}]}}}}
`

const volumeTemplate = `
  podManagementPolicy: Parallel
  serviceName: volume
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}}
`

const namespace = `
---
{apiVersion: v1, kind: Namespace, metadata: {name: overshoot}}
`

// workload is a Deployment or a StatefulSet; container, spec and further are added to its container, to its pods' spec and
// to its own spec.
type workload struct {
	kind, row, app           string
	replicas                 int
	requests                 string
	container, spec, further string
}

func (l workload) manifest() string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: %s
metadata: {namespace: overshoot, name: %[3]s}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {labels: {app: %[3]s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {row: %[2]s}
      containers:
      - {name: app, image: app, resources: {requests: %[5]s}%[6]s}
      %[7]s
%[8]s`, l.kind, l.row, l.app, l.replicas, l.requests, l.container, l.spec, l.further)
}
