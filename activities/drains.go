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

// Drains drains nodes. Evict reads the node and its pods from the API server directly and then watches them, so that it
// neither polls nor decides on a stale view; plan.Drain decides what comes next. It keeps no state that matters: if a
// worker is killed at any line, another one finds the cordon in place and evicts what is left, each eviction bound to the
// UID of its pod.
type Drains struct {
	// Client reads from and writes to the API server directly, without a cache.
	Client client.WithWatch
	// Events tells people with kubectl what happens; nil disables Events.
	Events Events
	// Attached returns the volumes that the mirror shows attached to a node; nil if there is no mirror.
	Attached func(node string) []string
	// Elsewhere returns which pods, by UID, of nodes that are going away have room on a serving node, and when the instance
	// of a claim ends, zero if that is not known. With nil, pods do not wait for room.
	Elsewhere func(claim string) (placed map[types.UID]bool, ends time.Time)
	// Hooked says whether a NodePool has hooks that run before a drain; nil means that none has.
	Hooked func(pool string) bool
	Log    *zap.Logger
	// counts is where evictions are counted; nil counts none.
	counts *Metrics
}

func (d *Drains) objects() objects { return objects{d.Client} }

func (d *Drains) tell(object runtime.Object, eventType, reason, message string) {
	recorder{d.Events}.tell(object, eventType, reason, message)
}

// Uncordon makes a node schedulable again after its drain was cancelled. It undoes only what Evict has done: a node that
// somebody else had cordoned before stays cordoned. It ignores a node that is gone.
func (d *Drains) Uncordon(ctx context.Context, in workflows.UncordonInput) (struct{}, error) {
	node, err := d.objects().node(ctx, in.Node, in.NodeUID)
	if err != nil || node == nil {
		return struct{}{}, err
	}
	_, err = d.objects().change(ctx, node, "uncordon", uncordonNode)
	return struct{}{}, err
}

// cordon keeps new pods off the node, and also external load balancers if the node is Tenon's and will be removed. It takes
// one write, or none if everything is in place.
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

// deleteTries is how often the deletion of a Node is tried that others change at the same moment, as its kubelet does.
const deleteTries = 5

// deleteNode sets the deletionTimestamp of a Node of ours, which shows others that the node will be removed, as with
// Karpenter: controllers of load balancers and of storage. The finalizer keeps the Node until the instance is gone. A Node
// without the finalizer would be gone at once, together with its pods, so it is left alone.
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
