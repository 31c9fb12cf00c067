package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/manifest"
)

// oldResources are what older versions of Karpenter define.
var oldResources = []schema.GroupVersionResource{
	{Group: awsv1.Group, Version: "v1alpha1", Resource: "awsnodetemplates"},
	{Group: karpv1.Group, Version: "v1alpha5", Resource: "provisioners"},
	{Group: awsv1.Group, Version: "v1beta1", Resource: "ec2nodeclasses"},
	{Group: karpv1.Group, Version: "v1beta1", Resource: "nodepools"},
}

// clusterDocuments reads the old objects of a cluster, and the settings that they depended on.
func clusterDocuments(ctx context.Context, restConfig *rest.Config, watch *stopwatch) ([]manifest.Document, error) {
	finder, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	direct, err := dynamic.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	docs, err := listed(ctx, direct, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "metadata.name=karpenter-global-settings")
	if err != nil {
		return nil, err
	}
	read := 0
	for _, resource := range oldResources {
		old, err := serves(finder, resource)
		if err != nil {
			return nil, err
		}
		current, err := serves(finder, schema.GroupVersionResource{Group: resource.Group, Version: "v1", Resource: resource.Resource})
		if err != nil {
			return nil, err
		}
		switch {
		case current:
			watch.say("note: the cluster has %s in v1 already", resource.GroupResource())
		case old:
			found, err := listed(ctx, direct, resource, "")
			if err != nil {
				return nil, err
			}
			docs, read = append(docs, found...), read+len(found)
		}
	}
	if read == 0 {
		return nil, errors.New("the cluster has no objects of older versions of Karpenter: nothing to convert")
	}
	return docs, nil
}

// serves reports whether the cluster serves a resource in a version.
func serves(finder discovery.DiscoveryInterface, resource schema.GroupVersionResource) (bool, error) {
	list, err := finder.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the cluster what it serves of %s: %w", resource.GroupVersion(), err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

// listed returns the objects of a resource.
func listed(ctx context.Context, direct dynamic.Interface, resource schema.GroupVersionResource, fields string) ([]manifest.Document, error) {
	list, err := direct.Resource(resource).List(ctx, metav1.ListOptions{FieldSelector: fields})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	var docs []manifest.Document
	for i := range list.Items {
		data, err := list.Items[i].MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", list.Items[i].GetKind(), list.Items[i].GetName(), err)
		}
		docs = append(docs, manifest.Document{Place: "the cluster", JSON: data})
	}
	return docs, nil
}
