package starter

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

// watchBuffers signals Provisioning while room that CapacityBuffers ask for is missing, and keeps their status truthful.
// Whether room is missing is a pure question over the mirror, asked after every change; in a cluster without buffers
// there is nothing to ask.
func (s *Starter) watchBuffers(ctx context.Context) error {
	events := s.Mirror.Subscribe(cluster.BuffersChanged, cluster.PodsPending, cluster.PodsChanged, cluster.NodeChanged, cluster.ClaimChanged,
		cluster.PoolEdited, cluster.ClassChanged)
	defer events.Close()
	isNews := func(kind cluster.EventKind) bool { return kind == cluster.PoolEdited || kind == cluster.ClassChanged }
	return s.announceWhile(ctx, events, isNews, settle, func(state *pending, snapshot *plan.Snapshot, news bool) (bool, time.Duration) {
		return s.keepBuffers(ctx, snapshot, state, news)
	})
}

// keepBuffers writes what has changed about the buffers. It says whether to signal Provisioning, and when to look again.
func (s *Starter) keepBuffers(ctx context.Context, snapshot *plan.Snapshot, state *pending, news bool) (signal bool, wait time.Duration) {
	buffers := s.Mirror.Buffers()
	if len(buffers) == 0 {
		return state.decide(snapshot.Time, nil, false)
	}
	if err := s.Mirror.Fresh(freshEnough); err != nil {
		return false, evaluateEvery
	}
	headroom := plan.FindHeadroom(snapshot)
	missing := map[types.UID]bool{}
	for _, pod := range headroom.Missing {
		missing[pod.UID] = true
		news = news || !state.announced[pod.UID]
	}
	signal, wait = state.decide(snapshot.Time, missing, news)
	ready := map[string]bool{}
	for _, node := range snapshot.Nodes {
		ready[node.Key()] = node.Initialized
	}
	for i := range buffers {
		there := 0
		for _, pod := range buffers[i].Pods {
			if ready[headroom.At[pod.UID]] {
				there++
			}
		}
		if err := s.keepBuffer(ctx, &buffers[i], there); err != nil && ctx.Err() == nil {
			s.Log.Warn("status of a CapacityBuffer will be written again", zap.String("namespace", buffers[i].Object.Namespace), zap.String("name", buffers[i].Object.Name), zap.Error(err))
			wait = statusRetry
		}
	}
	return signal, wait
}

// keepBuffer writes the status of a buffer if it has changed. A conflict means that the mirror is behind; its next change
// brings the buffer here again.
func (s *Starter) keepBuffer(ctx context.Context, buffer *cluster.Buffer, there int) error {
	before := buffer.Object
	object := before.DeepCopy()
	object.Status = bufferStatus(buffer, there)
	if equality.Semantic.DeepEqual(before.Status, object.Status) {
		return nil
	}
	err := s.Kube.Status().Patch(ctx, object, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// bufferStatus is the status of a buffer of whose pods some have room on nodes that are ready.
func bufferStatus(buffer *cluster.Buffer, there int) bufferv1.CapacityBufferStatus {
	object := &bufferv1.CapacityBuffer{ObjectMeta: buffer.Object.ObjectMeta}
	object.Status.Conditions = buffer.Object.DeepCopy().Status.Conditions
	status := &object.Status
	status.ProvisioningStrategy = new(bufferv1.ActiveCapacity)
	ready := metav1.Condition{Type: bufferv1.ConditionReadyForProvisioning, Status: metav1.ConditionTrue, Reason: bufferv1.ReasonResolved}
	provisioning := metav1.Condition{Type: bufferv1.ConditionProvisioning, Status: metav1.ConditionFalse}
	if buffer.Problem != "" {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, buffer.Reason, buffer.Problem
		provisioning.Reason, provisioning.Message = bufferv1.ReasonNotReadyForProvisioning, "it is not known what room there is to be"
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
