package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The cluster size that the memory target is stated for.
const (
	benchNodes = 1_000
	benchPods  = 10_000
	// benchVolumes is the number of bound claims; as many pods mount one.
	benchVolumes    = 2_000
	benchNamespaces = 200
	// serveBench turns the test binary into the API server of the benchmark, so that the two do not share a heap.
	serveBench = "TENON_SERVE_BENCH_CLUSTER"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveBench) != "" {
		serveBenchCluster()
		return
	}
	os.Exit(m.Run())
}

// serveBenchCluster serves a large cluster until standard input ends. Each line of input is the number of pods to
// change.
func serveBenchCluster() {
	server := newAPIServer()
	for i := range benchNodes {
		server.put("nodes", benchNode(i))
		server.put("nodeclaims", benchClaim(i))
		server.put("csinodes", attachLimit(benchNode(i).Name, 25))
	}
	for i := range benchVolumes {
		claim, volume := benchVolume(i)
		server.put("persistentvolumeclaims", claim)
		server.put("persistentvolumes", volume)
		server.put("volumeattachments", attachedVolume(fmt.Sprintf("csi-%064x", i), benchNode(i%benchNodes).Name, volume.Name))
	}
	for i := range benchNamespaces {
		server.put("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("team-%d", i), Labels: map[string]string{corev1.LabelMetadataName: fmt.Sprintf("team-%d", i), "stage": "prod"}, ManagedFields: managedFields(1)}})
	}
	server.put("storageclasses", delayedClass("fast", "ebs.csi.aws.com"))
	for i := range benchPods {
		server.put("pods", benchPod(i, 0))
	}
	listener := httptest.NewServer(server)
	fmt.Println(listener.URL)
	lines := bufio.NewScanner(os.Stdin)
	for generation := 1; lines.Scan(); generation++ {
		count, err := strconv.Atoi(lines.Text())
		if err != nil {
			panic(err)
		}
		for i := range count {
			server.put("pods", benchPod(i, generation))
		}
		server.put("nodes", testNode(fmt.Sprintf("marker-%d", generation), ""))
		fmt.Println("done")
	}
	server.endWatches()
	listener.Close()
}

// BenchmarkMirrorMemory fills a mirror with 1,000 nodes and 10,000 pods over HTTP, changes every pod three times, and
// reports the resident memory of this process, its peak, the live heap and the cost of a snapshot.
func BenchmarkMirrorMemory(b *testing.B) {
	executable, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	server := exec.CommandContext(b.Context(), executable)
	server.Env = append(os.Environ(), serveBench+"=1")
	server.Stderr = os.Stderr
	input, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = input.Close()
		_ = server.Wait()
	}()
	lines := bufio.NewReader(output)
	url, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		measureMirror(b, strings.TrimSpace(url), input, lines)
	}
}

func measureMirror(b *testing.B, url string, input io.Writer, output *bufio.Reader) {
	before := resident(b, "VmRSS:")
	m := runMirror(b, &apiServer{url: url}, Options{})
	for generation := 1; generation <= 3; generation++ {
		if _, err := fmt.Fprintln(input, benchPods); err != nil {
			b.Fatal(err)
		}
		if _, err := output.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	subscription := m.Subscribe(PodsChanged)
	for changedPods(m) < benchPods {
		select {
		case <-subscription.C:
			subscription.Take()
		case <-time.After(soon):
			b.Fatal("the changes do not arrive")
		}
	}
	subscription.Close()
	snapshot := m.Snapshot()
	if len(snapshot.Nodes) < benchNodes || len(snapshot.Pending) != benchPods/10 {
		b.Fatalf("%d nodes and %d pending pods in the snapshot", len(snapshot.Nodes), len(snapshot.Pending))
	}

	one, all := snapshotCost(m, 1), snapshotCost(m, benchNodes)
	b.ReportMetric(float64(one.Microseconds()), "µs/snapshot-1-changed")
	b.ReportMetric(float64(all.Microseconds()), "µs/snapshot-all-changed")
	unforced := resident(b, "VmRSS:")
	runtime.GC()
	debug.FreeOSMemory()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	b.ReportMetric(float64(heap.HeapAlloc)/(1<<20), "MiB-heap")
	b.ReportMetric(before, "MiB-RSS-empty")
	b.ReportMetric(unforced, "MiB-RSS")
	b.ReportMetric(resident(b, "VmRSS:"), "MiB-RSS-after-GC")
	b.ReportMetric(resident(b, "VmHWM:"), "MiB-RSS-peak")
	runtime.KeepAlive(m)
}

// changedPods counts the pods in their third generation.
func changedPods(m *Mirror) int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	count := 0
	for _, pod := range m.pods.feed.items {
		if pod.DeletionCost == 3 {
			count++
		}
	}
	return count
}

// snapshotCost returns the mean time of a snapshot after that many nodes have changed.
func snapshotCost(m *Mirror, nodes int) time.Duration {
	const rounds = 20
	var total time.Duration
	for range rounds {
		m.mu.Lock()
		left := nodes
		for name := range m.nodes.feed.items {
			if left--; left < 0 {
				break
			}
			m.places.touchNode(name)
		}
		m.mu.Unlock()
		start := time.Now()
		m.Snapshot()
		total += time.Since(start)
	}
	return total / rounds
}

// resident reads one of the process's memory figures, in MiB.
func resident(b *testing.B, field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("resident memory is read from /proc")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kilobytes / 1024
		}
	}
	b.Fatalf("no %s in /proc/self/status", field)
	return 0
}

func benchNode(i int) *corev1.Node {
	node := testNode(fmt.Sprintf("ip-10-%d-%d-%d.us-east-1.compute.internal", i/65536, i/256%256, i%256), fmt.Sprintf("aws:///us-east-1a/i-%017x", i))
	for l := range 24 {
		node.Labels[fmt.Sprintf("karpenter.k8s.aws/instance-property-%d", l)] = fmt.Sprint(i % (l + 2))
	}
	node.Labels[karpv1.NodePoolLabelKey] = "default"
	for range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{"example.com/some/repository@sha256:" + strings.Repeat("0123456789abcdef", 4), "example.com/some/repository:v1.2.3"}})
	}
	node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	node.ManagedFields = managedFields(2)
	return node
}

func benchClaim(i int) *karpv1.NodeClaim {
	claim := testClaim(fmt.Sprintf("default-%05x", i), fmt.Sprintf("aws:///us-east-1a/i-%017x", i))
	types := make([]string, 60)
	for t := range types {
		types[t] = fmt.Sprintf("m%d%c.%dxlarge", t%8, 'a'+t%5, 1<<(t%6))
	}
	claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: types},
		{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand", "spot"}},
	}
	claim.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		claim.SetCondition(metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
	}
	claim.ManagedFields = managedFields(2)
	return claim
}

// benchPod returns a pod of one of forty Deployments; one in ten has no node.
func benchPod(i, generation int) *corev1.Pod {
	app := fmt.Sprintf("service-%d", i%40)
	node := benchNode(i % benchNodes).Name
	if i%10 == 0 {
		node = ""
	}
	pod := testPod(fmt.Sprintf("%s-7d9c8b5f6c-%05x", app, i), node, ownedBy("ReplicaSet", app+"-7d9c8b5f6c"))
	pod.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", i))
	pod.Labels = map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/version": "1.2.3", "pod-template-hash": "7d9c8b5f6c"}
	pod.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": fmt.Sprint(generation)}
	pod.ManagedFields = managedFields(3)
	for v := range 20 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", v), Value: "some-value-of-a-setting"})
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if i < benchVolumes {
		claim, _ := benchVolume(i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume(claim.Name))
	}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	if node == "" {
		unschedulable(pod)
	} else {
		boundAt(time.Unix(1_700_000_000, 0))(pod)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, Image: "example.com/" + app, ImageID: strings.Repeat("0123456789abcdef", 4)}}
	}
	return pod
}

// benchVolume returns the claim of a pod of a StatefulSet, and its volume.
func benchVolume(i int) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	name := fmt.Sprintf("data-service-%d-7d9c8b5f6c-%05x", i%40, i)
	claim := volumeClaimFor(name, fmt.Sprintf("pvc-00000000-0000-4000-8000-%012x", i))
	claim.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", i))
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com"}
	claim.ManagedFields = managedFields(3)
	volume := persistentVolume(claim.Spec.VolumeName, name)
	volume.Labels, volume.Spec.ClaimRef.UID, volume.ManagedFields = nil, claim.UID, managedFields(3)
	volume.Spec.CSI.VolumeHandle = fmt.Sprintf("vol-%017x", i)
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.ebs.csi.aws.com/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"us-east-1" + string('a'+rune(i%3))}}}}}}}
	return claim, volume
}

func managedFields(managers int) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for i := range managers {
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("manager-%d", i), Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{},"f:image":{},"f:resources":{}}},"f:dnsPolicy":{},"f:restartPolicy":{}}}`)})
	}
	return entries
}
