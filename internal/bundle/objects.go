package bundle

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// workerLabels select the worker's Deployment and its pods in a namespace, as the chart labels them.
var workerLabels = kube.MatchingLabels{"app.kubernetes.io/name": "tenon"}

// ours is the component of Tenon's Events.
const ours = "tenon"

const noAnnotations = "values of annotations: their names are listed"

// objectParts are the parts that the API server knows.
func objectParts(o Options) []Part {
	classes := "user data, the context, values of tags and of annotations"
	switch {
	case o.UserData && o.Tags:
		classes = "the context and values of annotations"
	case o.UserData:
		classes = "the context, values of tags and of annotations"
	case o.Tags:
		classes = "user data, the context and values of annotations"
	}
	parts := []Part{
		{Path: "versions.json", Has: "versions of the programs", collect: func(_ context.Context, c *collector) error { return c.addJSON("versions.json", c.Versions) }},
		{Path: "kubernetes/deployments.json", Has: "the worker's Deployment in " + o.Namespace, Without: "values of environment variables that are not the worker's settings; commands and arguments of other containers; " + noAnnotations,
			Rights: "list deployments in " + o.Namespace, collect: listed("kubernetes/deployments.json", &appsv1.DeploymentList{}, (*reducer).workload, kube.InNamespace(o.Namespace), workerLabels)},
		{Path: "kubernetes/pods.json", Has: "the worker's pods in " + o.Namespace, Without: "what is left out of the Deployment",
			Rights: "list pods in " + o.Namespace, collect: listed("kubernetes/pods.json", &corev1.PodList{}, (*reducer).workload, kube.InNamespace(o.Namespace), workerLabels)},
		{Path: "kubernetes/leases.json", Has: "the Leases of " + o.Namespace + ", which say who acts", Without: noAnnotations,
			Rights: "list leases in " + o.Namespace, collect: listed("kubernetes/leases.json", &coordinationv1.LeaseList{}, (*reducer).plain, kube.InNamespace(o.Namespace))},
		{Path: "kubernetes/nodepools.json", Has: "NodePools", Without: noAnnotations, Rights: "list nodepools", collect: listed("kubernetes/nodepools.json", &karpv1.NodePoolList{}, (*reducer).plain)},
	}
	if o.NodeClasses != nil {
		parts = append(parts, Part{Path: "kubernetes/nodeclasses.json", Has: "node classes", Without: classes, Rights: "list ec2nodeclasses",
			collect: listed("kubernetes/nodeclasses.json", o.NodeClasses, (*reducer).nodeClass)})
	}
	return append(parts,
		Part{Path: "kubernetes/nodeclaims.json", Has: "NodeClaims", Without: noAnnotations, Rights: "list nodeclaims", collect: listed("kubernetes/nodeclaims.json", &karpv1.NodeClaimList{}, (*reducer).plain)},
		Part{Path: "kubernetes/nodes.json", Has: "Nodes: taints, capacity, conditions and versions", Without: "images, addresses and volumes; " + noAnnotations, Rights: "list nodes",
			collect: listed("kubernetes/nodes.json", &corev1.NodeList{}, (*reducer).node)},
		Part{Path: "kubernetes/events.json", Has: "Events that Tenon has written", Rights: "list events",
			collect: listed("kubernetes/events.json", &corev1.EventList{}, (*reducer).plain, kube.MatchingFields{"source": ours})},
		Part{Path: "pauses.json", Has: "what is paused, by whom and why", Rights: "get configmap " + karpv1.PauseConfigMapName + " in " + karpv1.PauseNamespace + ", list nodepools", collect: pauses},
	)
}

// listed collects the objects of a list, each as it is reduced.
func listed(path string, list kube.ObjectList, reduce func(*reducer, runtime.Object) (object, error), where ...kube.ListOption) func(context.Context, *collector) error {
	return func(ctx context.Context, c *collector) error {
		if err := c.Kube.List(ctx, list, where...); err != nil {
			return fmt.Errorf("list for %s: %w", path, err)
		}
		reduced := []object{}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			one, err := reduce(&c.reducer, item)
			reduced = append(reduced, one)
			return err
		}); err != nil {
			return err
		}
		return c.addJSON(path, reduced)
	}
}

// pauses collects what is paused in the whole cluster and for each NodePool.
func pauses(ctx context.Context, c *collector) error {
	found := map[string]any{}
	var list corev1.ConfigMap
	err := c.Kube.Get(ctx, kube.ObjectKey{Namespace: karpv1.PauseNamespace, Name: karpv1.PauseConfigMapName}, &list)
	if kube.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the pauses of the cluster: %w", err)
	}
	if found["cluster"], err = c.decoded(karpv1.ReadPauses(list.Data[karpv1.PauseConfigMapKey])); err != nil {
		return err
	}
	var pools karpv1.NodePoolList
	if err := c.Kube.List(ctx, &pools); err != nil {
		return fmt.Errorf("list NodePools for pauses: %w", err)
	}
	for _, pool := range pools.Items {
		if of := pool.Pauses(); len(of) > 0 {
			if found["NodePool "+pool.Name], err = c.decoded(of); err != nil {
				return err
			}
		}
	}
	return c.addJSON("pauses.json", found)
}
