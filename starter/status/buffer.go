package status

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// Buffers keeps the status of CapacityBuffers up to date.
type Buffers struct {
	// Kube must not read from a cache.
	Kube kube.Client
	Log  *zap.Logger
}

// Keep writes the status of buffers if it has changed. at is the node where each pod has room, by the pod's UID. It
// returns when to retry failed writes; zero if there are none.
func (b Buffers) Keep(ctx context.Context, buffers []cluster.Buffer, nodes []*plan.Node, at map[types.UID]string) (again time.Duration) {
	ready := map[string]bool{}
	for _, node := range nodes {
		ready[node.Key()] = node.Initialized
	}
	for i := range buffers {
		there := 0
		for _, pod := range buffers[i].Pods {
			if ready[at[pod.UID]] {
				there++
			}
		}
		if err := b.write(ctx, &buffers[i], there); err != nil && ctx.Err() == nil {
			b.Log.Warn("status of a CapacityBuffer will be written again", zap.String("namespace", buffers[i].Object.Namespace), zap.String("name", buffers[i].Object.Name), zap.Error(err))
			again = statusRetry
		}
	}
	return again
}

// write writes the status of a buffer if it has changed. A conflict means that the mirror is behind; its next change
// brings the buffer back here.
func (b Buffers) write(ctx context.Context, buffer *cluster.Buffer, there int) error {
	before := buffer.Object
	object := before.DeepCopy()
	object.Status = bufferStatus(buffer, there)
	if equality.Semantic.DeepEqual(before.Status, object.Status) {
		return nil
	}
	err := b.Kube.Status().Patch(ctx, object, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// bufferStatus returns the status of a buffer; there is the number of its pods that have room on initialized nodes.
func bufferStatus(buffer *cluster.Buffer, there int) bufferv1.CapacityBufferStatus {
	object := &bufferv1.CapacityBuffer{ObjectMeta: buffer.Object.ObjectMeta}
	object.Status.Conditions = buffer.Object.DeepCopy().Status.Conditions
	status := &object.Status
	status.ProvisioningStrategy = new(bufferv1.ActiveCapacity)
	ready := metav1.Condition{Type: bufferv1.ConditionReadyForProvisioning, Status: metav1.ConditionTrue, Reason: bufferv1.ReasonResolved}
	provisioning := metav1.Condition{Type: bufferv1.ConditionProvisioning, Status: metav1.ConditionFalse}
	if buffer.Problem != "" {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, buffer.Reason, buffer.Problem
		provisioning.Reason, provisioning.Message = bufferv1.ReasonNotReadyForProvisioning, "the size of the buffer is not known"
	} else {
		status.PodTemplateRef = buffer.Object.Spec.PodTemplateRef
		status.PodTemplateGeneration = new(buffer.Generation)
		status.Replicas = new(int32(len(buffer.Pods)))
		switch wanted := len(buffer.Pods); {
		case wanted == 0:
			provisioning.Reason, provisioning.Message = bufferv1.ReasonBufferEmpty, "no pods are asked for"
		case there == wanted:
			provisioning.Status, provisioning.Reason = metav1.ConditionTrue, bufferv1.ReasonFitsExistingCapacity
			provisioning.Message = fmt.Sprintf("there is room for %d pods", wanted)
		default:
			provisioning.Status, provisioning.Reason = metav1.ConditionTrue, bufferv1.ReasonRequiresNewCapacity
			provisioning.Message = fmt.Sprintf("there is room for %d of %d pods", there, wanted)
		}
		if len(buffer.Pods) == plan.MostVirtual {
			ready.Message = fmt.Sprintf("room is kept for %d pods at most", plan.MostVirtual)
		}
	}
	object.SetCondition(ready)
	object.SetCondition(provisioning)
	return *status
}
