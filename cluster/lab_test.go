package cluster

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/lab/labtest"
)

// TestMirrorOfARealAPIServer checks what our own test server cannot show: protobuf, streamed initial state, the custom
// resources as they are served, bookmarks, HTTP/2, and how an API server that hangs or is gone looks to the mirror.
func TestMirrorOfARealAPIServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l, config := labtest.APIServer(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			object.SetUID("")
			if err := writer.Create(ctx, object); err != nil {
				t.Fatalf("create %s: %v", object.GetName(), err)
			}
		}
	}
	create(testNode("n", "aws:///n"), realPod("bound", "n"), realPod("waits", ""))

	m, err := NewMirror(config, Options{Kind: nodeclass.Kind(), Log: zaptest.NewLogger(t), Heartbeat: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- m.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if err := m.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	awaitShape(t, m, "the first list", "claim= node=n provider=aws:///n: bound", "pending waits")
	if m.NodePool("default") == nil || m.NodeClass("default") == nil {
		t.Errorf("pools %v and classes %v, want the defaults of the laboratory", m.NodePools(), m.NodeClasses())
	}
	if node := m.Node("n"); len(node.ManagedFields) != 0 || node.Labels[corev1.LabelHostname] != "n" {
		t.Errorf("the Node is kept with %d managed fields and labels %v", len(node.ManagedFields), node.Labels)
	}

	claim := realClaim("c")
	create(claim)
	m.Assume(claim)
	if m.Claim("c") == nil {
		t.Error("an assumed claim is not there")
	}
	if err := m.AwaitClaims(ctx, claim.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	before := claim.DeepCopy()
	claim.Status.ProviderID = "aws:///n"
	if err := writer.Status().Patch(ctx, claim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	awaitShape(t, m, "claim and node are one", "claim=c node=n provider=aws:///n: bound", "pending waits")

	ended := realPod("bound", "n")
	if err := writer.Get(ctx, client.ObjectKeyFromObject(ended), ended); err != nil {
		t.Fatal(err)
	}
	ended.Status.Phase = corev1.PodSucceeded
	if err := writer.Status().Update(ctx, ended); err != nil {
		t.Fatal(err)
	}
	awaitShape(t, m, "a pod that has ended is not mirrored", "claim=c node=n provider=aws:///n:", "pending waits")

	const most = 3 * time.Second
	if err := m.Fresh(most); err != nil {
		t.Error(err)
	}
	if err := l.Kill(lab.APIServer, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var stale *StaleError
	eventually(t, "a hung API server shows", func() bool { return errors.As(m.Fresh(most), &stale) })
	if err := l.Kill(lab.APIServer, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is believed again when it goes on", func() bool { return m.Fresh(most) == nil })

	if err := l.Halt(lab.APIServer); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an API server that is gone shows", func() bool { return m.Staleness() > most })
	if err := l.Resume(ctx, lab.APIServer); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next one is found", func() bool { return m.Fresh(most) == nil })
	create(realPod("after", "n"))
	awaitShape(t, m, "and its changes arrive", "claim=c node=n provider=aws:///n: after", "pending waits")
}

// realPod returns a pod that a real API server accepts.
func realPod(name, node string) *corev1.Pod {
	pod := testPod(name, node)
	pod.Spec.Containers[0].Image = "example.com/web:v1"
	pod.CreationTimestamp = metav1.Time{}
	return pod
}

// realClaim returns a NodeClaim that a real API server accepts.
func realClaim(name string) *karpv1.NodeClaim {
	claim := testClaim(name, "")
	claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand}}}
	return claim
}
