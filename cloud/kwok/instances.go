package kwok

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud"
)

// Instances implements cloud.Provider.
func (p *Provider) Instances(ctx context.Context, query cloud.Query) ([]cloud.Instance, error) {
	selector := client.MatchingLabels{clusterLabel: p.cluster}
	if query.LaunchGroup != "" {
		selector[groupLabel] = query.LaunchGroup
	}
	var nodes corev1.NodeList
	if err := p.kube.List(ctx, &nodes, selector); err != nil {
		return nil, classified("Instances", err)
	}
	var instances []cloud.Instance
	for i := range nodes.Items {
		node := &nodes.Items[i]
		wanted := len(query.IDs) == 0 || slices.Contains(query.IDs, node.Name)
		if wanted && (query.Terminating || !terminated(node)) {
			instances = append(instances, instanceOf(node))
		}
	}
	slices.SortFunc(instances, func(a, b cloud.Instance) int { return compareIDs(a.ID, b.ID) })
	return instances, nil
}

// compareIDs orders ids.
func compareIDs(a, b string) int { return cmp.Compare(a, b) }

// Terminate implements cloud.Provider. An instance that is refused does not spare the others.
func (p *Provider) Terminate(ctx context.Context, ids []string) error {
	var failures []error
	for _, id := range ids {
		failures = append(failures, p.terminate(ctx, id))
	}
	return errors.Join(failures...)
}

func (p *Provider) terminate(ctx context.Context, id string) error {
	const operation = "Terminate"
	node, err := p.own(ctx, operation, id)
	if node == nil || err != nil {
		return err
	}
	if !terminated(node) {
		err := p.change(ctx, node, func() error {
			node.Annotations[terminatedAnnotation] = p.now().UTC().Format(time.RFC3339)
			delete(node.Labels, NodeLabel)
			return nil
		})
		if err != nil {
			return classified(operation, client.IgnoreNotFound(err))
		}
	}
	return classified(operation, client.IgnoreNotFound(p.kube.Delete(ctx, node, client.Preconditions{UID: &node.UID})))
}

// Tag implements cloud.Provider.
func (p *Provider) Tag(ctx context.Context, id string, tags map[string]string) error {
	const operation = "Tag"
	node, err := p.own(ctx, operation, id)
	if node == nil || err != nil {
		return err
	}
	return classified(operation, p.change(ctx, node, func() error {
		all := tagsOf(node)
		maps.Copy(all, tags)
		encoded, err := json.Marshal(all)
		node.Annotations[tagsAnnotation] = string(encoded)
		return err
	}))
}

// own returns the Node of an instance of this cluster, and nil if there is none of that id.
func (p *Provider) own(ctx context.Context, operation, id string) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := p.kube.Get(ctx, client.ObjectKey{Name: id}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, classified(operation, err)
	}
	if node.Labels[clusterLabel] != p.cluster {
		return nil, failed(cloud.Forbidden, operation, fmt.Errorf("the Node %s is no instance of cluster %s", id, p.cluster))
	}
	return node, nil
}

// change changes a Node, unless somebody else has changed it meanwhile.
func (p *Provider) change(ctx context.Context, node *corev1.Node, change func() error) error {
	before := node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if err := change(); err != nil {
		return err
	}
	return p.kube.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
