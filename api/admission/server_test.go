package admission

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/lab/labtest"
)

// TestARealAPIServerAgrees applies the same manifests to a kube-apiserver.
func TestARealAPIServerAgrees(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	server := startAPIServer(ctx, t)

	for _, object := range manifests(t) {
		if group := object.GroupVersionKind().Group; !strings.HasPrefix(group, "karpenter.") && group != "autoscaling.x-k8s.io" {
			continue
		}
		// The laboratory has applied some of these already.
		name := object.GetName()
		object.SetName("another-" + name)
		if err := server.Create(ctx, &object, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), name, err)
		}
	}
	for file, result := range converted(t) {
		for _, manifest := range result.Objects {
			object := &unstructured.Unstructured{Object: manifest}
			name := object.GetName()
			object.SetName("converted-" + name)
			if err := server.Create(ctx, object, client.DryRunAll); err != nil {
				t.Errorf("converted from %s: %s %s: %v", file, object.GetKind(), name, err)
			}
		}
	}
	for _, c := range cases() {
		for _, r := range c.refusals {
			broken := &unstructured.Unstructured{Object: patched(t, c.base, r.patch)}
			var err error
			if r.before == "" {
				err = server.Create(ctx, broken, client.DryRunAll)
			} else {
				err = update(ctx, t, server, &unstructured.Unstructured{Object: patched(t, c.base, r.before)}, broken)
			}
			if err == nil {
				t.Errorf("%s: %s: accepted, want an error about %s that says %s", c.kind, r.reason, r.field, r.message)
				continue
			}
			if !strings.Contains(err.Error(), r.field) || !strings.Contains(err.Error(), r.message) {
				t.Errorf("%s: %s: error %v, want one about %s that says %s", c.kind, r.reason, err, r.field, r.message)
			}
		}
	}
}

// startAPIServer runs a kube-apiserver with the definitions applied until the test ends, and returns a strict client.
func startAPIServer(ctx context.Context, t *testing.T) client.Client {
	t.Helper()
	_, config := labtest.APIServer(t)
	server, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(server, metav1.FieldValidationStrict)
}

// update creates the old object, tries to make the new one of it, and returns the error of that.
func update(ctx context.Context, t *testing.T, server client.Client, old, changed *unstructured.Unstructured) error {
	t.Helper()
	old.SetName("changes")
	if err := server.Create(ctx, old); err != nil {
		t.Fatal(err)
	}
	changed.SetName(old.GetName())
	changed.SetResourceVersion(old.GetResourceVersion())
	err := server.Update(ctx, changed, client.DryRunAll)
	if err := server.Delete(ctx, old); err != nil {
		t.Fatal(err)
	}
	return err
}
