package lab_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/tenon-sh/tenon/lab"
)

const namespace = metav1.NamespaceDefault

// TestControlPlane checks everything that Tenon's tests rely on with one control plane, because starting it takes longer
// than everything else in the test.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	opts := lab.Options{
		Dir:        t.TempDir(),
		Bin:        filepath.Join("..", "bin"),
		Components: lab.ControlPlane(),
		Bare:       true,
		Progress:   testWriter{t},
	}
	l, err := lab.Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})

	t.Run("a second lab is refused", func(t *testing.T) {
		if _, err := lab.Start(ctx, opts); !errors.Is(err, lab.ErrRunning) {
			t.Fatalf("starting a second lab on the directory: %v, want %v", err, lab.ErrRunning)
		}
	})
	clients := connect(t, l)
	t.Run("a simulated node becomes ready when told", func(t *testing.T) { nodeBecomesReady(ctx, t, clients) })
	t.Run("an evicted pod goes, if its budget allows", func(t *testing.T) { evict(ctx, t, clients) })
	t.Run("a job finishes", func(t *testing.T) { finishJob(ctx, t, clients) })
	t.Run("a pod is ready again after its kubelet was late", func(t *testing.T) { readyAgain(ctx, t, clients) })
	t.Run("a volume is attached", func(t *testing.T) { attachVolume(ctx, t, clients) })
	t.Run("a dead component comes back", func(t *testing.T) { comeBack(ctx, t, l) })
	t.Run("a crash loses nothing", func(t *testing.T) {
		if err := l.Crash(); err != nil {
			t.Fatal(err)
		}
		resumed, err := lab.Start(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		l = resumed
		if _, err := connect(t, l).CoreV1().Nodes().Get(ctx, "simulated", metav1.GetOptions{}); err != nil {
			t.Fatalf("after a crash: %v", err)
		}
		// kwok continues with the nodes it finds.
		createPod(ctx, t, connect(t, l), "after-the-crash", "simulated", nil)
	})
}

func connect(t *testing.T, l *lab.Lab) kubernetes.Interface {
	t.Helper()
	cfg, err := l.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func nodeBecomesReady(ctx context.Context, t *testing.T, clients kubernetes.Interface) {
	readyAt := time.Now().Add(2 * time.Second).UTC().Truncate(time.Second)
	create := func(name string, labels map[string]string) {
		t.Helper()
		resources := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20"),
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: labels, Annotations: map[string]string{"tenon.sh/ready-at": readyAt.Format(time.RFC3339)},
			},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}},
			Status: corev1.NodeStatus{
				Capacity: resources, Allocatable: resources,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady"}},
			},
		}
		if _, err := clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("simulated", map[string]string{lab.SimulatedNodeLabel: "true", corev1.LabelHostname: "simulated"})
	create("foreign", map[string]string{corev1.LabelHostname: "foreign"})

	var ready corev1.NodeCondition
	await(ctx, t, "the node is ready and not tainted", func(ctx context.Context) (bool, error) {
		node, err := clients.CoreV1().Nodes().Get(ctx, "simulated", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		ready = readyCondition(node)
		return ready.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0, nil
	})
	if ready.LastTransitionTime.Time.Before(readyAt) {
		t.Errorf("the node was ready at %s, before the instant %s in its annotation", ready.LastTransitionTime, readyAt)
	}
	foreign, err := clients.CoreV1().Nodes().Get(ctx, "foreign", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if readyCondition(foreign).Status == corev1.ConditionTrue {
		t.Error("kwok plays a node that the simulated cloud did not create")
	}
}

func readyCondition(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// readyAgain marks a pod not ready, as the node lifecycle controller does when a kubelet is late, and waits until it is
// ready again.
func readyAgain(ctx context.Context, t *testing.T, clients kubernetes.Interface) {
	pod := createPod(ctx, t, clients, "late", "simulated", nil)
	notReady := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
	pods := clients.CoreV1().Pods(pod.Namespace)
	marked, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, notReady, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if podReady(marked) {
		t.Fatal("the pod is ready though it was marked not ready")
	}
	await(ctx, t, "the pod is ready again", func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && podReady(pod), err
	})
}

func evict(ctx context.Context, t *testing.T, clients kubernetes.Interface) {
	labels := map[string]string{"app": "guarded"}
	pod := createPod(ctx, t, clients, "guarded", "simulated", labels)
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	budgets := clients.PolicyV1().PodDisruptionBudgets(namespace)
	if _, err := budgets.Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the budget counts the pod", func(ctx context.Context) (bool, error) {
		b, err := budgets.Get(ctx, "guard", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 1, err
	})
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	}
	err := clients.PolicyV1().Evictions(namespace).Evict(ctx, eviction)
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Fatalf("evicting against the budget: %v, want 429 with cause %s", err, policyv1.DisruptionBudgetCause)
	}
	if err := budgets.Delete(ctx, "guard", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the eviction is allowed", func(ctx context.Context) (bool, error) {
		err := clients.PolicyV1().Evictions(namespace).Evict(ctx, eviction)
		if apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return err == nil, err
	})
	await(ctx, t, "the pod is gone", func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
}

func finishJob(ctx context.Context, t *testing.T, clients kubernetes.Interface) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "short"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"tenon.sh/run-for": "100ms"}},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: containers()},
		}},
	}
	if _, err := clients.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the job has succeeded", func(ctx context.Context) (bool, error) {
		j, err := clients.BatchV1().Jobs(namespace).Get(ctx, "short", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 1, err
	})
}

func attachVolume(ctx context.Context, t *testing.T, clients kubernetes.Interface) {
	volume := "data"
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "attachment"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "ebs.csi.aws.com", NodeName: "simulated", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}
	attachments := clients.StorageV1().VolumeAttachments()
	if _, err := attachments.Create(ctx, attachment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the volume is attached", func(ctx context.Context) (bool, error) {
		a, err := attachments.Get(ctx, "attachment", metav1.GetOptions{})
		return err == nil && a.Status.Attached, err
	})
}

func comeBack(ctx context.Context, t *testing.T, l *lab.Lab) {
	before, err := l.PID(lab.Scheduler)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Kill(lab.Scheduler, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the scheduler runs as another process", func(context.Context) (bool, error) {
		pid, err := l.PID(lab.Scheduler)
		return pid != 0 && pid != before, err
	})
	if err := l.Resume(ctx, lab.Scheduler); err != nil {
		t.Fatal(err)
	}
}

// createPod creates a pod on a node and waits until it runs and is ready.
func createPod(ctx context.Context, t *testing.T, clients kubernetes.Interface, name, node string, labels map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: node}, Containers: containers()},
	}
	if _, err := clients.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the pod runs", func(ctx context.Context) (bool, error) {
		var err error
		pod, err = clients.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return pod.Status.Phase == corev1.PodRunning && podReady(pod), nil
	})
	return pod
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func containers() []corev1.Container {
	return []corev1.Container{{Name: "main", Image: "registry.example/pause"}}
}

func await(ctx context.Context, t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// TestMissingBinary checks that Start reports a missing binary.
func TestMissingBinary(t *testing.T) {
	t.Parallel()
	_, err := lab.Start(context.Background(), lab.Options{Dir: t.TempDir(), Bin: t.TempDir()})
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("starting without binaries: %v, want %v", err, os.ErrNotExist)
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Log(string(line[:len(line)-1]))
	return len(line), nil
}
