package status

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/lab/labtest"
	"github.com/tenon-sh/tenon/plan"
)

// TestPoolStatusOnARealAPIServer runs the loop against a kube-apiserver and a real mirror: the laboratory's default
// NodePool becomes ready with its class, counts a claim, and stops being ready when its class is deleted.
func TestPoolStatusOnARealAPIServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	client, mirror, another := startLabMirror(ctx, t)
	keeper := NewNodePools(nodeclass.Kind(), client, mirror, zaptest.NewLogger(t))
	running, stop := context.WithCancel(ctx)
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return mirror.Run(running) })
	group.Go(func() error { return keeper.Run(running) })
	defer func() {
		stop()
		if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()

	awaitPool := func(reason string, ok func(*karpv1.NodePool) bool) {
		t.Helper()
		var pool karpv1.NodePool
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return ok(&pool), client.Get(ctx, kube.ObjectKey{Name: "default"}, &pool)
		})
		if err != nil {
			t.Fatalf("%s: %v; the status is %+v", reason, err, pool.Status)
		}
	}
	awaitPool("a class nobody has looked at", func(p *karpv1.NodePool) bool {
		c := p.Condition(karpv1.ConditionTypeNodeClassReady)
		return c != nil && c.Status == metav1.ConditionUnknown && p.Annotations[karpv1.NodePoolHashAnnotationKey] != ""
	})

	class := &awsv1.EC2NodeClass{}
	if err := client.Get(ctx, kube.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	for _, part := range class.ReadyParts() {
		class.SetCondition(metav1.Condition{Type: part, Status: metav1.ConditionTrue})
	}
	if err := client.Status().Update(ctx, class); err != nil {
		t.Fatal(err)
	}
	awaitPool("a class that is ready", func(p *karpv1.NodePool) bool { return p.IsTrue(karpv1.ConditionTypeReady) })

	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{karpv1.NodePoolLabelKey: "default"}}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{}
	if err := client.Create(ctx, claim); err != nil {
		t.Fatal(err)
	}
	claim.Status.ProviderID = "aws:///us-east-1a/i-1"
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	if err := client.Status().Update(ctx, claim); err != nil {
		t.Fatal(err)
	}
	awaitPool("an instance", func(p *karpv1.NodePool) bool {
		return p.Status.Resources.Cpu().Value() == 4 && p.Status.Nodes != nil && *p.Status.Nodes == 1
	})

	publishThenRemove(ctx, t, client, func() {
		awaitPool("published devices", func(p *karpv1.NodePool) bool { return p.Annotations[karpv1.LearntDevicesAnnotationKey] != "" })
	})
	group.Go(func() error { return another.Run(running) })
	if err := another.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	devices := another.Snapshot().Devices
	if learnt := devices.Learnt[plan.NodeKind{Pool: "default", InstanceType: "g5.xlarge"}]; len(devices.Slices) > 0 || len(learnt) != 1 || learnt[0].Spec.Devices[0].Name != "gpu-0" {
		t.Errorf("another process knows %v of nodes that are gone, and %v of others", learnt, devices.Slices)
	}

	if err := client.Delete(ctx, class); err != nil {
		t.Fatal(err)
	}
	awaitPool("the class is gone", func(p *karpv1.NodePool) bool {
		c := p.Condition(karpv1.ConditionTypeNodeClassReady)
		return c != nil && c.Reason == karpv1.ReasonNodeClassNotFound && !p.IsTrue(karpv1.ConditionTypeReady)
	})
}

// publishThenRemove publishes the devices of a node of the default NodePool, and removes both after meanwhile.
func publishThenRemove(ctx context.Context, t *testing.T, client kube.Client, meanwhile func()) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpus", Labels: map[string]string{
		karpv1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "g5.xlarge"}}}
	published := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "gpu-0"}}}}
	for _, object := range []kube.Object{node, published} {
		if err := client.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	meanwhile()
	for _, object := range []kube.Object{published, node} {
		if err := client.Delete(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
}

// startLabMirror starts a kube-apiserver that runs until the test ends, and returns a client and two mirrors of it that are
// not running yet.
func startLabMirror(ctx context.Context, t *testing.T) (client kube.Client, mirror, another *cluster.Mirror) {
	t.Helper()
	_, config := labtest.APIServer(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kube.New(config, kube.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []**cluster.Mirror{&mirror, &another} {
		*made, err = cluster.NewMirror(config, cluster.Options{Kind: nodeclass.Kind(), DynamicResources: true, Log: zaptest.NewLogger(t)})
		if err != nil {
			t.Fatal(err)
		}
	}
	return client, mirror, another
}
