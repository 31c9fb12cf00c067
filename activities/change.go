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

// guarded are the lists of a Node that several parties write. A patch that changes one of them states what it saw there, of
// taints those that it takes off, so that nothing of somebody else's is lost; what else changes on the Node meanwhile, as
// its status does all the time, does not matter.
var guarded = []string{"/spec/taints", "/metadata/finalizers", "/metadata/ownerReferences"}

// change patches the node to what edit makes of it, and writes nothing where edit changes nothing. When somebody else
// was quicker, the node is read again and edited anew. A node that has vanished needs no change.
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

// nodePatch is the JSON patch from one state of a Node to another, guarded where it touches what others write. Taints are
// taken off and put on one by one: Kubernetes' own come and go all the time while a node joins, most of them at the end of
// the list, and are nobody's business here.
func nodePatch(before, after *corev1.Node) ([]byte, error) {
	var taints []jsonpatch.Operation
	if len(before.Spec.Taints) > 0 {
		taints = taintChanges(before.Spec.Taints, after.Spec.Taints)
		after = after.DeepCopy()
		after.Spec.Taints = before.Spec.Taints // that is seen to
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

// taintChanges takes the taints off a Node that are no longer wanted, each only if it is where it was seen, and puts on
// those that are new. The last goes first, so that the places of the others stay the same.
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
