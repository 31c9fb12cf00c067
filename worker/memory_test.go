package worker_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/tenon-sh/tenon/lab"
)

// The cluster for which the memory target of 150 MiB is stated.
const (
	memoryNodes   = 1_000
	memoryPods    = 10_000
	memoryPending = 1_000
)

// BenchmarkWorkerMemory starts the whole worker against a real API server with 1,000 nodes and 10,000 pods, and reports its
// resident memory and the peak. No NodePool can place one in ten of the pods, so the worker also plans. The nodes are not
// Tenon's own: the cost of those is that of their sticky workflows, which Temporal's cache limits, not the mirror.
func BenchmarkWorkerMemory(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	program := filepath.Join(b.TempDir(), "tenon-lab")
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../cmd/tenon-lab").CombinedOutput(); err != nil {
		b.Fatalf("build tenon-lab: %v\n%s", err, output)
	}
	l, err := lab.Start(ctx, lab.Options{
		Dir:        b.TempDir(),
		Bin:        filepath.Join("..", "bin"),
		TenonLab:   program,
		Components: []lab.Component{lab.Etcd, lab.APIServer, lab.Temporal, lab.EC2Sim, lab.Worker},
		// No controller creates service accounts here.
		Args: map[lab.Component][]string{lab.APIServer: {"--disable-admission-plugins=ServiceAccount"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Stop(); err != nil {
			b.Error(err)
		}
	})
	if err := l.Halt(lab.Worker); err != nil {
		b.Fatal(err)
	}
	clients := populate(ctx, b, l)
	for b.Loop() {
		if err := l.Resume(ctx, lab.Worker); err != nil {
			b.Fatal(err)
		}
		pid, err := l.PID(lab.Worker)
		if err != nil {
			b.Fatal(err)
		}
		awaitPlan(ctx, b, l, clients)
		b.ReportMetric(memoryOf(b, pid, "VmRSS:"), "MiB-RSS")
		b.ReportMetric(memoryOf(b, pid, "VmHWM:"), "MiB-RSS-peak")
		// The rest of the resident memory is the program's own text, which the kernel can drop and read again.
		b.ReportMetric(memoryOf(b, pid, "RssAnon:"), "MiB-RSS-anonymous")
		if err := l.Halt(lab.Worker); err != nil {
			b.Fatal(err)
		}
	}
}

// awaitPlan waits until the worker has planned, which it reports on the pods it cannot place.
func awaitPlan(ctx context.Context, b *testing.B, l *lab.Lab, clients kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, time.Second, false, func(ctx context.Context) (bool, error) {
		events, err := clients.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
		return err == nil && len(events.Items) > 0, err
	})
	if err != nil {
		log, _ := os.ReadFile(l.LogFile(lab.Worker))
		b.Fatalf("the worker has not planned: %v\n%s", err, log[max(0, len(log)-4096):])
	}
	if err := clients.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
}

// populate creates the nodes and pods and returns the client it did so with.
func populate(ctx context.Context, b *testing.B, l *lab.Lab) kubernetes.Interface {
	config, err := l.RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	creating, ctx := errgroup.WithContext(ctx)
	creating.SetLimit(16)
	for i := range memoryNodes {
		creating.Go(func() error {
			_, err := clients.CoreV1().Nodes().Create(ctx, memoryNode(i), metav1.CreateOptions{})
			return err
		})
	}
	for i := range memoryPods {
		creating.Go(func() error {
			pod := memoryPod(i)
			created, err := clients.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			if err != nil || pod.Spec.NodeName != "" {
				return err
			}
			created.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			_, err = clients.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{})
			return err
		})
	}
	if err := creating.Wait(); err != nil {
		b.Fatal(err)
	}
	return clients
}

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.us-east-1.compute.internal", i/256, i%256)
}

func memoryNode(i int) *corev1.Node {
	labels := map[string]string{corev1.LabelHostname: nodeName(i), corev1.LabelTopologyZone: "us-east-1a", corev1.LabelInstanceTypeStable: "m5.xlarge"}
	for l := range 20 {
		labels[fmt.Sprintf("example.com/property-%d", l)] = strconv.Itoa(i % (l + 2))
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("58"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///us-east-1a/i-%017x", i)},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for image := range 30 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("example.com/image-%d@sha256:%s", image, strings.Repeat("0123456789abcdef", 4))}})
	}
	return node
}

// memoryPod is a pod of one of forty Deployments. The pending ones ask for what no NodePool offers.
func memoryPod(i int) *corev1.Pod {
	app, yes := fmt.Sprintf("service-%d", i%40), true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-7d9c8b5f6c-%05d", app, i),
			Labels:          map[string]string{"app.kubernetes.io/name": app, "pod-template-hash": "7d9c8b5f6c"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9c8b5f6c", UID: "unknown", Controller: &yes}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/" + app + ":v1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi")}}}}},
	}
	for v := range 20 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", v), Value: "some-value-of-a-setting"})
	}
	if i < memoryPending {
		pod.Spec.NodeSelector = map[string]string{"example.com/nowhere": "true"}
		return pod
	}
	pod.Spec.NodeName = nodeName(i % memoryNodes)
	return pod
}

// memoryOf reads one of a process's memory figures, in MiB.
func memoryOf(b *testing.B, pid int, field string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("resident memory is read from /proc")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kibibytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kibibytes / 1024
		}
	}
	b.Fatalf("no %s in the status of process %d", field, pid)
	return 0
}
