package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

func testOverlay(name string, generation int64) *karpv1alpha1.NodeOverlay {
	return &karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Generation: generation}}
}

// An overlay may change the offerings of every NodePool; its status changes nothing.
func TestOverlaysAreFollowed(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.overlays = true
	server.put("nodepools", &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	server.start(t)
	m := runMirror(t, server, Options{NodeOverlays: true})
	edited := Event{Kind: PoolEdited, Name: "web"}
	subscription := m.Subscribe(PoolEdited, OverlaysChanged)
	defer subscription.Close()
	seen := func(why string, want []Event, done func([]*karpv1alpha1.NodeOverlay) bool) {
		t.Helper()
		if err := m.Await(within(t), func() (bool, error) { return done(m.NodeOverlays()), nil }, Event{Kind: OverlaysChanged}); err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		got := subscription.Take()
		if len(got) != len(want) {
			t.Errorf("%s: events %v, want %v", why, got, want)
		}
	}
	server.put("nodeoverlays", testOverlay("discount", 1))
	seen("a new one", []Event{{Kind: OverlaysChanged}, edited}, func(all []*karpv1alpha1.NodeOverlay) bool { return len(all) == 1 })
	judged := testOverlay("discount", 1)
	judged.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue})
	server.put("nodeoverlays", judged)
	seen("its status", []Event{{Kind: OverlaysChanged}}, func(all []*karpv1alpha1.NodeOverlay) bool { return all[0].Condition(karpv1.ConditionTypeReady) != nil })
	server.put("nodeoverlays", testOverlay("discount", 2))
	seen("an edit", []Event{{Kind: OverlaysChanged}, edited}, func(all []*karpv1alpha1.NodeOverlay) bool { return all[0].Generation == 2 })
	described := testOverlay("discount", 2)
	described.Annotations = map[string]string{karpv1alpha1.DeviceTemplatesAnnotationKey: "[]"}
	server.put("nodeoverlays", described)
	seen("its devices", []Event{{Kind: OverlaysChanged}, edited}, func(all []*karpv1alpha1.NodeOverlay) bool { return len(all[0].Annotations) == 1 })
	server.remove("nodeoverlays", testOverlay("discount", 2))
	seen("it goes", []Event{{Kind: OverlaysChanged}, edited}, func(all []*karpv1alpha1.NodeOverlay) bool { return len(all) == 0 })
}

// Without the feature gate the mirror does not request overlays, so that a worker needs no permission for them.
func TestOverlaysAreLeftAlone(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.overlays = true
	server.put("nodeoverlays", testOverlay("discount", 1))
	server.start(t)
	m := runMirror(t, server, Options{})
	if got := m.NodeOverlays(); len(got) != 0 || server.requests("nodeoverlays") != 0 {
		t.Errorf("%d overlays are followed, and %d requests were made for them", len(got), server.requests("nodeoverlays"))
	}
}

// A cluster that does not serve overlays is like one without any.
func TestOverlaysThatAreNotServed(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.start(t)
	m := runMirror(t, server, Options{NodeOverlays: true})
	if got := m.NodeOverlays(); len(got) != 0 {
		t.Errorf("%d overlays are followed", len(got))
	}
}
