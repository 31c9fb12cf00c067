package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guarded lists the fields of a Node that several parties write. A patch that changes one of them tests for the value it
// read, for taints only for those that it removes, so that it overwrites no change of others. Concurrent changes elsewhere
// on the Node, such as its status, do not matter.
var guarded = []string{"/spec/taints", "/metadata/finalizers", "/metadata/ownerReferences"}

// change patches the node to the result of edit, and writes nothing if edit changes nothing. After a concurrent change it
// reads the node again and repeats the edit. A node that is gone needs no change.
func (o objects) change(ctx context.Context, node *corev1.Node, doing string, edit func(*corev1.Node)) (*corev1.Node, error) {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		changed := node.DeepCopy()
		edit(changed)
		if equality.Semantic.DeepEqual(node, changed) {
			return node, nil
		}
		patch, err := nodePatch(node, changed)
		if err != nil {
			return nil, fmt.Errorf("%s node %s: %w", doing, node.Name, err)
		}
		err = o.Patch(ctx, changed, client.RawPatch(types.JSONPatchType, patch))
		switch {
		case err == nil:
			return changed, nil
		case apierrors.IsNotFound(err):
			return node, nil
		case !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) || pause > time.Second:
			return nil, fmt.Errorf("%s node %s: %w", doing, node.Name, err)
		}
		if err := smithytime.SleepWithContext(ctx, pause); err != nil {
			return nil, fmt.Errorf("%s node %s: %w", doing, node.Name, err)
		}
		fresh, err := o.node(ctx, node.Name, string(node.UID))
		if err != nil {
			return nil, err
		}
		if fresh == nil {
			return node, nil
		}
		node = fresh
	}
}

// nodePatch returns the JSON patch from one state of a Node to another, guarded where it touches what others write. It adds
// and removes taints one by one: Kubernetes' own taints change all the time while a node joins, most of them at the end of
// the list, and do not matter here.
func nodePatch(before, after *corev1.Node) ([]byte, error) {
	var taints []jsonpatch.Operation
	if len(before.Spec.Taints) > 0 {
		taints = taintChanges(before.Spec.Taints, after.Spec.Taints)
		after = after.DeepCopy()
		after.Spec.Taints = before.Spec.Taints // handled by taintChanges
	}
	from, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	operations, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	seen := map[string]any{"/spec/taints": before.Spec.Taints, "/metadata/finalizers": before.Finalizers, "/metadata/ownerReferences": before.OwnerReferences}
	var tests []jsonpatch.Operation
	for _, path := range guarded {
		for _, operation := range operations {
			if operation.Path == path || len(operation.Path) > len(path) && operation.Path[:len(path)+1] == path+"/" {
				tests = append(tests, jsonpatch.NewOperation("test", path, seen[path]))
				break
			}
		}
	}
	return json.Marshal(slices.Concat(tests, operations, taints))
}

// taintChanges removes from a Node the taints that are no longer wanted, each only if it is still at its index, and appends
// the new ones. It removes the last one first, so that the indexes of the others stay valid.
func taintChanges(before, after []corev1.Taint) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for i, taint := range slices.Backward(before) {
		if !slices.ContainsFunc(after, func(t corev1.Taint) bool { return equality.Semantic.DeepEqual(t, taint) }) {
			path := fmt.Sprintf("/spec/taints/%d", i)
			operations = append(operations, jsonpatch.NewOperation("test", path, taint), jsonpatch.NewOperation("remove", path, nil))
		}
	}
	for _, taint := range after {
		if !slices.ContainsFunc(before, func(t corev1.Taint) bool { return equality.Semantic.DeepEqual(t, taint) }) {
			operations = append(operations, jsonpatch.NewOperation("add", "/spec/taints/-", taint))
		}
	}
	return operations
}
