package status

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// countingClient returns an in-memory cluster with one object that has a status. It counts all patches in writes.
func countingClient(t *testing.T, object kube.Object, writes *int) kube.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(karpv1.AddToScheme, awsv1.AddToScheme)
	if err := kinds.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(object).WithObjects(object).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, client kube.WithWatch, object kube.Object, patch kube.Patch, options ...kube.PatchOption) error {
				*writes++
				return client.Patch(ctx, object, patch, options...)
			},
			SubResourcePatch: func(ctx context.Context, client kube.Client, name string, object kube.Object, patch kube.Patch, options ...kube.SubResourcePatchOption) error {
				*writes++
				return client.SubResource(name).Patch(ctx, object, patch, options...)
			},
		}).Build()
}
