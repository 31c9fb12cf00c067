package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/deploy"
)

// fieldOwner is the field manager of the objects that the lab applies.
const fieldOwner = client.FieldOwner("tenon-dev")

// The worker's leader election Lease in the lab.
const (
	leaseNamespace = metav1.NamespaceSystem
	leaseName      = "karpenter-leader-election"
)

// resources applies the lab's objects to its cluster.
type resources struct {
	site
	// bare leaves out the custom resource definitions and the default NodePool and node class.
	bare bool
}

// apply applies the worker's roles and, unless the lab is bare, the custom resource definitions. The first time it also
// applies the default node class and NodePool.
func (r resources) apply(ctx context.Context) error {
	cfg, err := r.RESTConfig()
	if err != nil {
		return err
	}
	writer, err := client.New(cfg, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the lab's API server: %w", err)
	}
	if err := applyWorkerRoles(ctx, writer); err != nil {
		return fmt.Errorf("applying the worker's roles: %w", err)
	}
	if r.bare {
		return nil
	}
	if err := applyDefinitions(ctx, writer); err != nil {
		return err
	}
	defaults := applyDefaults
	if r.state.Provider == ProviderKwok {
		if err := applyKwok(ctx, writer); err != nil {
			return fmt.Errorf("applying what the kwok provider needs: %w", err)
		}
		defaults = applyKwokDefaults
	}
	if r.state.DefaultsApplied {
		return nil
	}
	if err := defaults(ctx, writer, r.state.Cluster); err != nil {
		return fmt.Errorf("applying the default resources: %w", err)
	}
	r.state.DefaultsApplied = true
	return r.state.save(r.layout)
}

// applyWorkerRoles grants the worker's user exactly what the chart grants the worker, so that a right missing from the
// chart shows up in the lab.
func applyWorkerRoles(ctx context.Context, writer client.Client) error {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: string(userTenon)}
	roles, err := deploy.WorkerRoles("tenon", subject, leaseNamespace, leaseName, true)
	if err != nil {
		return err
	}
	return applyTyped(ctx, writer, roles.ClusterRole, roles.ClusterRoleBinding, roles.Role, roles.RoleBinding, roles.PauseRole, roles.PauseRoleBinding)
}

// applyKwok applies the definition of KWOKNodeClass, and grants the worker's user what it does with the kwok provider.
func applyKwok(ctx context.Context, writer client.Client) error {
	definition, err := deploy.KwokDefinition()
	if err != nil {
		return err
	}
	if err := applyManifest(ctx, writer, definition); err != nil {
		return err
	}
	role, binding, err := deploy.KwokRoles(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: string(userTenon)})
	if err != nil {
		return err
	}
	if err := applyTyped(ctx, writer, role, binding); err != nil {
		return err
	}
	return awaitEstablished(ctx, writer, 1)
}

func applyKwokDefaults(ctx context.Context, writer client.Client, _ string) error {
	defaults, err := deploy.KwokDefaults()
	if err != nil {
		return err
	}
	return applyManifest(ctx, writer, defaults)
}

func applyTyped(ctx context.Context, writer client.Client, objects ...runtime.Object) error {
	for _, typed := range objects {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		if err := applyObject(ctx, writer, &unstructured.Unstructured{Object: object}); err != nil {
			return err
		}
	}
	return nil
}

func applyDefinitions(ctx context.Context, writer client.Client) error {
	definitions, err := deploy.CRDs()
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(definitions)) {
		if err := applyManifest(ctx, writer, definitions[file]); err != nil {
			return fmt.Errorf("applying %s: %w", file, err)
		}
	}
	return awaitEstablished(ctx, writer, len(definitions))
}

func applyDefaults(ctx context.Context, writer client.Client, cluster string) error {
	class, err := deploy.DefaultNodeClass(cluster)
	if err != nil {
		return err
	}
	pool, err := deploy.DefaultNodePool(cluster)
	if err != nil {
		return err
	}
	for _, manifest := range [][]byte{class, pool} {
		if err := applyManifest(ctx, writer, manifest); err != nil {
			return err
		}
	}
	return nil
}

// applyManifest applies every document of a manifest, server-side.
func applyManifest(ctx context.Context, writer client.Client, manifest []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("decoding: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := applyObject(ctx, writer, object); err != nil {
			return err
		}
	}
}

func applyObject(ctx context.Context, writer client.Client, object *unstructured.Unstructured) error {
	unstructured.RemoveNestedField(object.Object, "status") // set by the API server
	err := writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// awaitEstablished waits until at least count custom resource definitions exist and the API server serves all of them.
func awaitEstablished(ctx context.Context, reader client.Reader, count int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinitionList"})
		if err := reader.List(ctx, &list); err != nil {
			return fmt.Errorf("listing custom resource definitions: %w", err)
		}
		established := 0
		for _, definition := range list.Items {
			if isEstablished(definition) {
				established++
			}
		}
		if established == len(list.Items) && established >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d custom resource definitions are served: %w", established, len(list.Items), ctx.Err())
		case <-tick.C:
		}
	}
}

func isEstablished(definition unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == string(apiextensionsv1.Established) && condition["status"] == string(apiextensionsv1.ConditionTrue)
	})
}
