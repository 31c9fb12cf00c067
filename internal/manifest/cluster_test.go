package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPods(t *testing.T) {
	t.Parallel()
	pod := func(name, more string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: shop%s}\nspec: {containers: [{name: c}]}\n", name, more)
	}
	workload := func(version, kind, name, spec string) string {
		return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: shop}\nspec: {%s template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c}]}}}\n", version, kind, name, spec)
	}
	const selector = "selector: {matchLabels: {app: x}},"
	node := "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 4, memory: 16Gi}}\n"
	bound := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: here, namespace: shop}\nspec: {nodeName: n1, containers: [{name: c}]}\n"
	for name, test := range map[string]struct {
		reason, text string
		pending      []string
		bound        []string
	}{
		"Pod":             {reason: "a pod is itself", text: pod("a", ""), pending: []string{"a"}},
		"Deployment":      {reason: "replicas default to one", text: workload("apps/v1", "Deployment", "d", selector), pending: []string{"d-0"}},
		"Replicas":        {reason: "every replica is a pod", text: workload("apps/v1", "ReplicaSet", "r", "replicas: 3,"+selector), pending: []string{"r-0", "r-1", "r-2"}},
		"Scaled":          {reason: "no replicas, no pods", text: workload("apps/v1", "Deployment", "d", "replicas: 0,"+selector)},
		"StatefulSet":     {reason: "ordinals may begin anywhere", text: workload("apps/v1", "StatefulSet", "s", "replicas: 2, ordinals: {start: 5},"+selector), pending: []string{"s-5", "s-6"}},
		"Controller":      {reason: "the selector of a ReplicationController follows from its template", text: workload("v1", "ReplicationController", "rc", ""), pending: []string{"rc-0"}},
		"Job":             {reason: "one pod at a time is the default", text: workload("batch/v1", "Job", "j", "completions: 9,"), pending: []string{"j-0"}},
		"Parallel":        {reason: "no more in parallel than are to complete", text: workload("batch/v1", "Job", "j", "parallelism: 9, completions: 2,"), pending: []string{"j-0", "j-1"}},
		"Suspended":       {reason: "a suspended Job runs nothing", text: workload("batch/v1", "Job", "j", "suspend: true, parallelism: 9,")},
		"CronJob":         {reason: "one run", text: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: shop}\nspec: {schedule: '* * * * *', jobTemplate: {spec: {parallelism: 2, template: {spec: {containers: [{name: c}]}}}}}\n", pending: []string{"c-0", "c-1"}},
		"DaemonSet":       {reason: "a DaemonSet's pods come with the nodes", text: workload("apps/v1", "DaemonSet", "d", selector)},
		"NewerStatus":     {reason: "a newer cluster says more of a pod than is known here", text: pod("a", "") + "status: {novelty: true}\n", pending: []string{"a"}},
		"Finished":        {reason: "what has ended needs no node", text: pod("a", "") + "status: {phase: Succeeded}\n"},
		"Bound":           {reason: "a pod stays on the node it has", text: node + bound + pod("b", ""), pending: []string{"b"}, bound: []string{"here"}},
		"Elsewhere":       {reason: "a node that is not there has to be bought again", text: bound, pending: []string{"here"}},
		"Existing":        {reason: "pods that exist are not made again", text: workload("apps/v1", "ReplicaSet", "r", "replicas: 3,"+selector) + pod("r-x1z", ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]"), pending: []string{"r-0", "r-1", "r-x1z"}},
		"Owned":           {reason: "a ReplicaSet of a Deployment is the Deployment", text: workload("apps/v1", "Deployment", "d", "replicas: 2,"+selector) + strings.Replace(workload("apps/v1", "ReplicaSet", "d-55", "replicas: 2,"+selector), "namespace: shop", "namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: u, controller: true}]", 1), pending: []string{"d-0", "d-1"}},
		"WithoutOwner":    {reason: "the ReplicaSet between may be left out", text: workload("apps/v1", "Deployment", "d", "replicas: 2,"+selector) + pod("d-55-a", ", labels: {pod-template-hash: '55'}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-55, uid: u, controller: true}]"), pending: []string{"d-0", "d-55-a"}},
		"StatefulMissing": {reason: "the ordinals that exist are not used twice", text: workload("apps/v1", "StatefulSet", "s", "replicas: 2,"+selector) + pod("s-0", ", ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: u, controller: true}]"), pending: []string{"s-0", "s-1"}},
		"List":            {reason: "lists hold objects", text: `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a","namespace":"shop"},"spec":{"containers":[{"name":"c"}]}}]}`, pending: []string{"a"}},
		"Buffer":          {reason: "room for pods is planned for as for pods", text: workload("apps/v1", "Deployment", "d", "replicas: 4,"+selector) + "---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b, namespace: shop}\nspec: {scalableRef: {apiGroup: apps, kind: Deployment, name: d}, percentage: 25}\n", pending: []string{"capacity-buffer-b-0", "d-0", "d-1", "d-2", "d-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, _, err := read(t, test.text)
			if err != nil {
				t.Fatal(err)
			}
			var pending, bound []string
			for _, p := range cluster.Snapshot.Pending {
				if !p.Provisionable() || p.Namespace != "shop" {
					t.Errorf("%s/%s is not provisionable in shop", p.Namespace, p.Name)
				}
				pending = append(pending, p.Name)
			}
			for _, n := range cluster.Snapshot.Nodes {
				for _, p := range n.Pods {
					bound = append(bound, p.Name)
				}
			}
			slices.Sort(pending)
			if diff := cmp.Diff(test.pending, pending); diff != "" {
				t.Errorf("%s: pending (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.bound, bound); diff != "" {
				t.Errorf("%s: bound (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	pod := func(spec string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {app: x}}\nspec: {" + spec + "}\n"
	}
	for name, test := range map[string]struct {
		reason, text string
		requests     string
		priority     int32
		note         string
	}{
		"Requests":      {reason: "requests follow from limits", text: pod("containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 200m}}}]"), requests: "cpu 200m, memory 1Gi, pods 1"},
		"PodLevel":      {reason: "the pod as a whole may have limits", text: pod("resources: {limits: {cpu: 2}}, containers: [{name: c, resources: {requests: {memory: 1Gi}}}]"), requests: "cpu 2, memory 1Gi, pods 1"},
		"LimitRange":    {reason: "a LimitRange gives containers what they do not name", text: pod("containers: [{name: c, resources: {requests: {cpu: 1}}}]") + "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Container, defaultRequest: {cpu: 5, memory: 2Gi}}]}\n", requests: "cpu 1, memory 2Gi, pods 1"},
		"Overhead":      {reason: "a RuntimeClass costs", text: pod("runtimeClassName: kata, containers: [{name: c}]") + "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata}\nhandler: kata\noverhead: {podFixed: {memory: 160Mi}}\n", requests: "memory 160Mi, pods 1"},
		"NoRuntime":     {reason: "one that is not there is noted", text: pod("runtimeClassName: kata, containers: [{name: c}]"), requests: "pods 1", note: "RuntimeClass kata is not among the manifests: no overhead is assumed"},
		"Priority":      {reason: "a PriorityClass is looked up", text: pod("priorityClassName: high, containers: [{name: c}]") + "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n", requests: "pods 1", priority: 1000},
		"GlobalDefault": {reason: "one class may be for all others", text: pod("containers: [{name: c}]") + "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: usual}\nvalue: 7\nglobalDefault: true\n", requests: "pods 1", priority: 7},
		"System":        {reason: "every cluster has two classes of its own", text: pod("priorityClassName: system-node-critical, containers: [{name: c}]"), requests: "pods 1", priority: 2000001000},
		"NoPriority":    {reason: "one that is not there is noted", text: pod("priorityClassName: high, containers: [{name: c}]"), requests: "pods 1", note: "PriorityClass high is not among the manifests: priority 0 is assumed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, _, err := read(t, test.text)
			if err != nil {
				t.Fatal(err)
			}
			p := cluster.Snapshot.Pending[0]
			if got := p.Class.Requests.String(); got != test.requests {
				t.Errorf("%s: requests %q, want %q", test.reason, got, test.requests)
			}
			if p.Priority != test.priority {
				t.Errorf("%s: priority %d, want %d", test.reason, p.Priority, test.priority)
			}
			if test.note != "" && !slices.Contains(cluster.Notes, test.note) {
				t.Errorf("%s: notes %q, want %q", test.reason, cluster.Notes, test.note)
			}
		})
	}
}

// TestDaemonSets checks what a DaemonSet takes of each node.
func TestDaemonSets(t *testing.T) {
	t.Parallel()
	const set = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c}]}}}\n"
	const limits = "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Container, default: {cpu: 2}}]}\n"
	const node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: 8}}\n"
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: d-1, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]}\nspec: {nodeName: node-1, overhead: {memory: 64Mi}, containers: [{name: c, resources: {requests: {cpu: 3}}}]}\n"
	for name, test := range map[string]struct{ reason, text, requests string }{
		"Template":   {reason: "its template asks for nothing", text: set, requests: "pods 1"},
		"LimitRange": {reason: "a LimitRange gives containers what they do not name", text: set + limits, requests: "cpu 2, pods 1"},
		"Live":       {reason: "a pod that runs knows best", text: set + limits + node + pod, requests: "cpu 3, memory 64Mi, pods 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, _, err := read(t, test.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := cluster.Snapshot.DaemonSets[0].Class.Requests.String(); got != test.requests {
				t.Errorf("%s: it takes %q, want %q", test.reason, got, test.requests)
			}
		})
	}
}

// TestShared checks that the pods of a workload share their requests, however many pods there are.
func TestShared(t *testing.T) {
	t.Parallel()
	cluster, _, err := read(t, strings.Replace(deployment, "replicas: 2", "replicas: 20000", 1))
	if err != nil {
		t.Fatal(err)
	}
	pods := cluster.Snapshot.Pending
	if len(pods) != 20000 {
		t.Fatalf("%d pods", len(pods))
	}
	for _, p := range pods {
		if p.Class != pods[0].Class || p.Labels != pods[0].Labels {
			t.Fatalf("%s does not share with %s", p.Name, pods[0].Name)
		}
	}
}

func TestStatefulSetVolumes(t *testing.T) {
	t.Parallel()
	cluster, _, err := read(t, `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c}]
      volumes: [{name: data, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: gp3, accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Gi}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	for n, p := range cluster.Snapshot.Pending {
		want := fmt.Sprintf("data-db-%d", n)
		if diff := cmp.Diff([]string{want}, p.Mounts.Names()); diff != "" {
			t.Errorf("%s mounts (-want +got):\n%s", p.Name, diff)
		}
		if claim := cluster.Snapshot.Storage.Claims["shop/"+want]; claim == nil || claim.Bytes != 8<<30 {
			t.Errorf("claim %s: %+v", want, claim)
		}
		if p.Labels.Set["statefulset.kubernetes.io/pod-name"] != p.Name {
			t.Errorf("%s has labels %v", p.Name, p.Labels.Set)
		}
	}
}

func TestPools(t *testing.T) {
	t.Parallel()
	own, err := Read(t.Context(), []string{Stdin}, strings.NewReader(nodePool+"---\n"+deployment), nil)
	if err != nil {
		t.Fatal(err)
	}
	others, err := Read(t.Context(), []string{Stdin}, strings.NewReader(strings.Replace(nodePool, "general", "other", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		reason    string
		manifests *Manifests
		pools     []string
		pods      int
	}{
		"Own":      {reason: "pools among the manifests are used", manifests: own, pools: []string{"general"}, pods: 2},
		"Replaced": {reason: "pools given apart take their place", manifests: own.WithPools(others), pools: []string{"other"}, pods: 2},
		"Assumed":  {reason: "without any, one is assumed", manifests: &Manifests{}, pools: []string{"default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, err := test.manifests.Cluster(time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			var pools []string
			for _, pool := range cluster.NodePools {
				pools = append(pools, pool.Name)
				if cluster.Classes[pool.Spec.Template.Spec.NodeClassRef.Name] == nil {
					t.Errorf("%s: pool %s has no class", test.reason, pool.Name)
				}
			}
			if diff := cmp.Diff(test.pools, pools); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if len(cluster.Snapshot.Pending) != test.pods {
				t.Errorf("%s: %d pods, want %d", test.reason, len(cluster.Snapshot.Pending), test.pods)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "# nothing but a comment\n---\n" + deployment, "deep/b.yml": nodePool, "deep/notes.txt": "not a manifest",
		"c.json": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"}} {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manifests, err := Read(t.Context(), []string{dir, filepath.Join(dir, "a.yaml")}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if manifests.Len() != 3 {
		t.Errorf("%d objects, want 3", manifests.Len())
	}
	if diff := cmp.Diff([]string{"these have no part in planning and are ignored: Service (1)"}, manifests.Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "there is no such file", filepath.Join(dir, "empty"): "has no file that ends in .yaml",
	} {
		_ = os.Mkdir(filepath.Join(dir, "empty"), 0o755)
		if _, err := Read(t.Context(), []string{path}, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}
