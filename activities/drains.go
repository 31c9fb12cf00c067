package activities

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// Drains empties nodes. Evict looks at the node and its pods in the API server itself and then follows them, so that it
// neither polls nor decides on a stale view; plan.Drain says what comes next. It keeps nothing that matters: a worker
// killed at any line is followed by another that finds the cordon in place and evicts what is left, each eviction bound
// to the UID of its pod.
type Drains struct {
	// Client reads from and writes to the API server without a cache between.
	Client client.WithWatch
	// Events tells people with kubectl what happens; nil tells nobody.
	Events Events
	// Attached are the volumes that a mirror shows attached to a node; nil where there is none.
	Attached func(node string) []string
	// Elsewhere says which pods of nodes that go have room on a node that serves, by UID, and when the instance of a claim
	// ends, zero where that is not known; nil where pods are not to wait for room.
	Elsewhere func(claim string) (placed map[types.UID]bool, ends time.Time)
	Log       *zap.Logger
}

func (d *Drains) objects() objects { return objects{d.Client} }

func (d *Drains) tell(object runtime.Object, eventType, reason, message string) {
	recorder{d.Events}.tell(object, eventType, reason, message)
}

// Uncordon makes a node schedulable again after its drain was taken back. It undoes only what Evict has done: a node
// that somebody else had cordoned before stays so. A node that is gone needs nothing.
func (d *Drains) Uncordon(ctx context.Context, in workflows.UncordonInput) (struct{}, error) {
	node, err := d.objects().node(ctx, in.Node, in.NodeUID)
	if err != nil || node == nil {
		return struct{}{}, err
	}
	_, err = d.objects().change(ctx, node, "uncordon", uncordonNode)
	return struct{}{}, err
}

// cordon keeps new pods off the node, and external load balancers too where the node is Tenon's and will go. It is one
// write, and none where everything is in place.
func (d *Drains) cordon(ctx context.Context, node *corev1.Node, claimed, byHand bool) (*corev1.Node, error) {
	edit := cordonForeign
	if claimed {
		edit = func(node *corev1.Node) {
			cordonClaimed(node)
			if byHand {
				setAnnotation(node, drainedAnnotation, "true")
			}
		}
	}
	return d.objects().change(ctx, node, "cordon", edit)
}

// deleteTries is how often a Node is deleted anew that somebody changes at the same moment, as its kubelet does.
const deleteTries = 5

// deleteNode gives a Node of ours its deletionTimestamp, by which others see that it goes, as with Karpenter: controllers of
// load balancers and of storage. The finalizer keeps it until the instance is gone. A Node that has none would be gone at
// once, and its pods with it, so it is left.
func (d *Drains) deleteNode(ctx context.Context, node *corev1.Node) error {
	for try := 1; ; try++ {
		if node == nil || !node.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(node, karpv1.TerminationFinalizer) {
			return nil
		}
		err := d.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion})
		if !apierrors.IsConflict(err) || try == deleteTries {
			return ignoreNotFound("delete Node "+node.Name, err)
		}
		if node, err = d.objects().node(ctx, node.Name, string(node.UID)); err != nil {
			return err
		}
	}
}
