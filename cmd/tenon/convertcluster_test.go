package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/lab/labtest"
)

// olderDefinition is the definition of a kind as an older cluster has it, with any fields.
const olderDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[3]s}
spec:
  group: %[3]s
  scope: Cluster
  names: {plural: %[1]s, kind: %[2]s}
  versions:
    - name: %[4]s
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// inOlderCluster are objects of an older cluster.
var inOlderCluster = []string{
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: karpenter-global-settings, namespace: default}, data: {aws.defaultInstanceProfile: nodes}}`,
	`{apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, metadata: {name: old}, spec: {subnetSelector: {team: shop}, securityGroupSelector: {team: shop}}}`,
	`{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: old, finalizers: [karpenter.sh/termination]}, spec: {providerRef: {name: old}}, status: {resources: {cpu: "4"}}}`,
	`{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, metadata: {name: newer}, spec: {amiFamily: AL2023, role: nodes, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}}`,
	`{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: newer}, spec: {template: {spec: {requirements: [], nodeClassRef: {name: newer}}}}}`,
}

// TestConvertReadsACluster reads a real API server that serves older versions only. It begins with the definitions of v1,
// which such a cluster does not have.
func TestConvertReadsACluster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, config := labtest.APIServer(t)
	server, err := kube.New(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clusterDocuments(ctx, config, newStopwatch(new(bytes.Buffer))); err == nil {
		t.Error("there is nothing to convert in a cluster of v1, and no error says so")
	}
	for _, kind := range [][]any{{"nodepools", "NodePool", "karpenter.sh", "v1beta1"}, {"ec2nodeclasses", "EC2NodeClass", "karpenter.k8s.aws", "v1beta1"},
		{"provisioners", "Provisioner", "karpenter.sh", "v1alpha5"}, {"awsnodetemplates", "AWSNodeTemplate", "karpenter.k8s.aws", "v1alpha1"}} {
		definition := object(t, fmt.Sprintf(olderDefinition, kind...))
		current := definition.DeepCopy()
		if err := server.Delete(ctx, current); err == nil {
			await(ctx, t, "the definition of v1 is gone", func() bool {
				return apierrors.IsNotFound(server.Get(ctx, kube.ObjectKeyFromObject(current), current))
			})
		}
		if err := server.Create(ctx, definition); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range inOlderCluster {
		old := object(t, text)
		await(ctx, t, "there is "+old.GetKind(), func() bool {
			err := server.Create(ctx, old.DeepCopy())
			if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	docs, err := clusterDocuments(ctx, config, newStopwatch(new(bytes.Buffer)))
	if err != nil {
		t.Fatal(err)
	}
	result := convert.Convert(docs, convert.Options{})
	if failures := result.Failures(); len(failures) > 0 {
		t.Fatal(failures)
	}
	var got []string
	for _, manifest := range result.Objects {
		u := unstructured.Unstructured{Object: manifest}
		got = append(got, u.GetAPIVersion()+" "+u.GetKind()+" "+u.GetName())
		metadata, _ := manifest["metadata"].(map[string]any)
		if keys := slices.Sorted(maps.Keys(metadata)); !slices.Equal(keys, []string{"name"}) || manifest["status"] != nil {
			t.Errorf("%s has what only a cluster fills in: metadata %v, status %v", u.GetName(), keys, manifest["status"])
		}
	}
	slices.Sort(got)
	want := []string{"karpenter.k8s.aws/v1 EC2NodeClass newer", "karpenter.k8s.aws/v1 EC2NodeClass old", "karpenter.sh/v1 NodePool newer", "karpenter.sh/v1 NodePool old"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

// object reads an object.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// await waits until something holds.
func await(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return holds(), nil }); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
