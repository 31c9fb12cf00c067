package status

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
)

// overlayWorld is a cluster with overlays, and a cloud with one instance type for the classes it knows.
type overlayWorld struct {
	NodeOverlayMirror
	t       *testing.T
	client  kube.WithWatch
	writes  int
	pools   []*karpv1.NodePool
	classes map[string]cloud.NodeClass
}

func newOverlayWorld(t *testing.T, overlays ...*karpv1alpha1.NodeOverlay) *overlayWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := karpv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &overlayWorld{t: t, pools: []*karpv1.NodePool{testPool("web")}, classes: map[string]cloud.NodeClass{"default": &awsv1.EC2NodeClass{}}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&karpv1alpha1.NodeOverlay{})
	for _, overlay := range overlays {
		builder = builder.WithObjects(overlay)
	}
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, client kube.Client, name string, object kube.Object, patch kube.Patch, options ...kube.SubResourcePatchOption) error {
			w.writes++
			return client.SubResource(name).Patch(ctx, object, patch, options...)
		},
	}).Build()
	return w
}

func (w *overlayWorld) NodePools() []*karpv1.NodePool         { return w.pools }
func (w *overlayWorld) NodeClass(name string) cloud.NodeClass { return w.classes[name] }

func (w *overlayWorld) NodeOverlays() []*karpv1alpha1.NodeOverlay {
	var list karpv1alpha1.NodeOverlayList
	if err := w.client.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	var all []*karpv1alpha1.NodeOverlay
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

func (w *overlayWorld) InstanceTypes(_ context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error) {
	if class.GetName() == "broken" {
		return nil, errors.New("no subnets")
	}
	return []*cloud.InstanceType{{Name: "m5.large", Offerings: []cloud.Offering{{CapacityType: "on-demand", Zone: "a", Price: 1, Available: true}}}}, nil
}

// step makes a pass, and checks how many writes it takes and the conditions of the overlays after it.
func (w *overlayWorld) step(reason string, writes int, want map[string]string) time.Duration {
	w.t.Helper()
	w.writes = 0
	again, err := NewNodeOverlays(nodeclass.Labels(), w.client, w, w.InstanceTypes, zaptest.NewLogger(w.t)).pass(w.t.Context())
	if err != nil {
		w.t.Fatalf("%s: %v", reason, err)
	}
	if w.writes != writes {
		w.t.Errorf("%s: %d writes, want %d", reason, w.writes, writes)
	}
	for _, overlay := range w.NodeOverlays() {
		ready, valid := overlay.Condition(karpv1.ConditionTypeReady), overlay.Condition(karpv1.ConditionTypeValidationSucceeded)
		if ready == nil || valid == nil || ready.Status != valid.Status {
			w.t.Fatalf("%s: %s: Ready %+v, ValidationSucceeded %+v", reason, overlay.Name, ready, valid)
		}
		got := string(valid.Status) + " " + valid.Reason + " " + valid.Message
		if !strings.HasPrefix(got, want[overlay.Name]) {
			w.t.Errorf("%s: %s is %q, want %q", reason, overlay.Name, got, want[overlay.Name])
		}
	}
	return again
}

func pricing(name, price string, weight int32) *karpv1alpha1.NodeOverlay {
	overlay := &karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	overlay.Spec.Price, overlay.Spec.Weight = &price, &weight
	return overlay
}

// Every overlay's status says whether it applies; what has not changed is not written.
func TestOverlayStatus(t *testing.T) {
	t.Parallel()
	w := newOverlayWorld(t, pricing("a", "0.1", 1), pricing("b", "0.2", 1), pricing("c", "0.2", 2), pricing("d", "dear", 3))
	want := map[string]string{
		"a": "False Conflict NodeOverlay b has the same weight", "b": "True ValidationSucceeded", "c": "True ValidationSucceeded",
		"d": "False RuntimeValidation spec.price: Invalid value",
	}
	if again := w.step("new overlays", 4, want); again != overlaysEvery {
		t.Errorf("overlays are looked at again after %s, want %s", again, overlaysEvery)
	}
	w.step("nothing has changed", 0, want)
	apart := w.NodeOverlays()[0]
	apart.Spec.Weight = new(int32(7))
	if err := w.client.Update(t.Context(), apart); err != nil {
		t.Fatal(err)
	}
	want["a"] = "True ValidationSucceeded"
	w.step("the conflict is resolved", 1, want)
}

// A NodePool whose instance types are not known does not hold up overlays.
func TestOverlaysOfABrokenPool(t *testing.T) {
	t.Parallel()
	w := newOverlayWorld(t, pricing("a", "0.1", 1))
	w.classes["broken"] = &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "broken"}}
	broken, lost := testPool("broken"), testPool("lost")
	broken.Spec.Template.Spec.NodeClassRef.Name, lost.Spec.Template.Spec.NodeClassRef.Name = "broken", "nowhere"
	w.pools = append(w.pools, broken, lost)
	if again := w.step("a broken pool", 1, map[string]string{"a": "True"}); again != overlaysAgain {
		t.Errorf("it is looked at again after %s, want %s", again, overlaysAgain)
	}
}

func TestNoOverlays(t *testing.T) {
	t.Parallel()
	if again := newOverlayWorld(t).step("none", 0, nil); again != 0 {
		t.Errorf("a cluster without overlays is looked at after %s", again)
	}
}
