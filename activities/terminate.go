package activities

import (
	"cmp"
	"context"
	"fmt"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// tellAfter is how long an instance may take to end before the claim's conditions say what is being waited for.
	tellAfter = 5 * time.Second
	// tellAgain is how long an instance may stay unchanged after a termination request before the request is repeated.
	tellAgain = 10 * time.Second
	// lostWithin is how long EC2 may still show an instance as running that it has just reported as gone.
	lostWithin = 10 * time.Second
)

// terminator terminates instances, and releases the Nodes and the claims that they leave.
type terminator struct {
	objects   objects
	mirror    Mirror
	cloud     cloud.Provider
	instances instances
	events    recorder
	log       *zap.Logger
}

// Terminate terminates an instance and waits until the cloud says that it is gone; only then does it remove the finalizers
// of the Node and the NodeClaim, in this order. If it finds that the node is not lost or not drained, contrary to its
// input, it terminates nothing. The claim stays until its Node is gone, which finalizers of others may hold.
func (t *terminator) Terminate(ctx context.Context, in workflows.TerminateInput) (struct{}, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	claim, err := t.objects.claim(ctx, in.Claim)
	if err != nil {
		return struct{}{}, err
	}
	own, err := t.instances.ownInstance(ctx, claim, workflows.Instance{ID: in.Instance})
	if err != nil {
		return struct{}{}, err
	}
	in.Instance = own.ID
	providerID := ""
	if claim != nil {
		providerID = claim.Status.ProviderID
	}
	if in.Lost {
		if err := t.checkLost(ctx, claim, in); err != nil {
			return struct{}{}, err
		}
	}
	if err := t.checkDrained(ctx, claim, in); err != nil {
		return struct{}{}, err
	}
	if in.Instance != "" {
		seen, err := t.endInstance(ctx, claim, in)
		if err != nil {
			return struct{}{}, err
		}
		// A claim that is deleted during its launch may never learn which instance is its own.
		providerID = cmp.Or(providerID, seen)
		t.deleteStranded(ctx, providerID, in)
	}
	if err := t.releaseNode(ctx, claim, providerID, in); err != nil {
		return struct{}{}, err
	}
	if err := t.objects.releaseClaim(ctx, claim); err != nil {
		return struct{}{}, err
	}
	logs.Of(ctx, t.log).Info("terminated", zap.String("claim", in.Claim.Name), zap.String("node", in.Node), zap.String("instance", in.Instance), zap.String("reason", in.Reason))
	return struct{}{}, nil
}

// checkLost verifies that an instance which was reported as gone is gone, because anybody who may write to the Temporal
// namespace can send such signals. EC2's view may be some seconds behind. An instance whose Node is gone needs no drain in
// any case.
func (t *terminator) checkLost(ctx context.Context, claim *karpv1.NodeClaim, in workflows.TerminateInput) error {
	name := nodeOf(claim, in)
	for began := time.Now(); name != "" && in.Instance != ""; {
		node, err := t.objects.node(ctx, name, in.NodeUID)
		if err != nil || node == nil {
			return err
		}
		found, err := t.cloud.Instances(ctx, cloud.Query{IDs: []string{in.Instance}})
		switch {
		case err != nil:
			return cloudFailure("look for "+in.Instance, err)
		case len(found) == 0:
			return nil
		case time.Since(began) >= lostWithin:
			return giveUp(workflows.FailureNotLost, "instance %s of node %s is running, although it was reported as gone", in.Instance, name)
		}
		if err := smithytime.SleepWithContext(ctx, goneEvery); err != nil {
			return fmt.Errorf("wait for EC2 to say that %s is gone: %w", in.Instance, err)
		}
	}
	return nil
}

// tellTerminating writes onto the claim how its drain ended and that its instance is being terminated.
func (t *terminator) tellTerminating(ctx context.Context, claim *karpv1.NodeClaim, in workflows.TerminateInput) error {
	if claim == nil || claim.IsTrue(karpv1.ConditionTypeInstanceTerminating) {
		return nil
	}
	return t.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
		switch in.Outcome {
		case workflows.Drained:
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDrained, Status: metav1.ConditionTrue})
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeVolumesDetached, Status: metav1.ConditionTrue})
		case workflows.DeadlineReached:
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDrained, Status: metav1.ConditionFalse, Reason: reasonGraceElapsed})
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeVolumesDetached, Status: metav1.ConditionFalse, Reason: reasonGraceElapsed})
		}
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: in.Reason})
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue})
	})
}

// endInstance terminates an instance and returns once the cloud says that it is gone, with its provider id, empty if the
// cloud never knew it. An instance that the cloud does not know counts as gone only once it is old enough to be visible.
func (t *terminator) endInstance(ctx context.Context, claim *karpv1.NodeClaim, in workflows.TerminateInput) (providerID string, err error) {
	id, began, visibleBy := in.Instance, time.Now(), time.Now()
	if claim != nil {
		if launched := claim.Condition(karpv1.ConditionTypeLaunched); launched != nil {
			visibleBy = launched.LastTransitionTime.Add(consistencyLag)
		} else {
			visibleBy = time.Now().Add(consistencyLag)
		}
	}
	var sent time.Time
	for ending := false; ; {
		// Repeat the request until the instance is seen to be shutting down.
		if !ending && time.Since(sent) >= tellAgain {
			if err := t.cloud.Terminate(ctx, []string{id}); err != nil {
				t.events.tellBoth(nil, claim, corev1.EventTypeWarning, eventFailedTermination, fmt.Sprintf("Instance %s cannot be terminated: %v", id, err))
				return "", cloudFailure("terminate "+id, err)
			}
			sent = time.Now()
		}
		found, err := t.cloud.Instances(ctx, cloud.Query{IDs: []string{id}, Terminating: true})
		if err != nil {
			return "", cloudFailure("look for "+id, err)
		}
		if len(found) == 1 {
			providerID = found[0].ProviderID
		}
		if len(found) == 0 && !time.Now().Before(visibleBy) || len(found) == 1 && found[0].State == stateTerminated {
			return providerID, nil
		}
		if time.Since(began) >= tellAfter {
			if err := t.tellTerminating(ctx, claim, in); err != nil {
				return "", err
			}
		}
		ending = len(found) == 1 && found[0].State == stateShuttingDown
		t.keepClosed(ctx, providerID, in)
		if err := smithytime.SleepWithContext(ctx, goneEvery); err != nil {
			return "", fmt.Errorf("wait for %s to end: %w", id, err)
		}
	}
}

// keepClosed closes the node of an ending instance if it is open: pods that come now would be lost with the instance.
func (t *terminator) keepClosed(ctx context.Context, providerID string, in workflows.TerminateInput) {
	node := t.mirror.NodeByProviderID(providerID)
	if node == nil || disrupted(node) || in.NodeUID != "" && in.NodeUID != string(node.UID) {
		return
	}
	if _, err := t.objects.change(ctx, node, "cordon", cordonClaimed); err != nil {
		logs.Of(ctx, t.log).Warn("could not close a node whose instance is ending", zap.String("node", node.Name), zap.String("claim", in.Claim.Name), zap.Error(err))
	}
}

// EC2's names for the states of an instance that is shutting down, and of one that is gone for good.
const (
	stateShuttingDown = "shutting-down"
	stateTerminated   = "terminated"
)

// deleteStranded deletes the remaining pods of an instance that is gone: they no longer run, and their owners create others
// only once they are deleted. Kubernetes' own collector finds them too, but takes most of a minute, in which the node that
// waits for their successors looks empty. deleteStranded leaves to it the pods that cannot be deleted, and all pods of a
// Node that belongs to another instance by now: Node names are addresses, and are reused.
func (t *terminator) deleteStranded(ctx context.Context, providerID string, in workflows.TerminateInput) {
	if providerID == "" {
		return
	}
	node := t.mirror.NodeByProviderID(providerID)
	if node == nil || in.NodeUID != "" && in.NodeUID != string(node.UID) {
		return
	}
	for _, pod := range t.mirror.PodsOnNode(node.Name) {
		if pod.Daemon || pod.Static || pod.Terminal {
			continue
		}
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		if err := t.objects.Delete(ctx, object, client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			logs.Of(ctx, t.log).Warn("could not delete a pod whose instance is gone", zap.String("pod", pod.Key()), zap.String("node", node.Name), zap.String("claim", in.Claim.Name), zap.Error(err))
		}
	}
}

// releaseNode deletes the Node, takes the finalizer off it, and returns when it is gone.
func (t *terminator) releaseNode(ctx context.Context, claim *karpv1.NodeClaim, providerID string, in workflows.TerminateInput) error {
	node := &corev1.Node{}
	name := nodeOf(claim, in)
	if name == "" && providerID != "" {
		// The Node joined without the claim learning of it.
		if joined := t.mirror.NodeByProviderID(providerID); joined != nil {
			name = joined.Name
		}
	}
	if name == "" {
		return nil
	}
	if err := t.objects.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return ignoreNotFound("read Node "+name, err)
	}
	if in.NodeUID != "" && string(node.UID) != in.NodeUID || providerID != "" && node.Spec.ProviderID != "" && node.Spec.ProviderID != providerID {
		return nil // the name belongs to another instance by now
	}
	if node.DeletionTimestamp.IsZero() {
		if err := t.objects.Delete(ctx, node, client.Preconditions{UID: &node.UID}); err != nil {
			return ignoreNotFound("delete Node "+name, err)
		}
	}
	node, err := t.objects.change(ctx, node, "take the finalizer off", func(node *corev1.Node) {
		controllerutil.RemoveFinalizer(node, karpv1.TerminationFinalizer)
	})
	if err != nil || len(node.Finalizers) == 0 {
		return err
	}
	return t.awaitNodeGone(ctx, claim, node)
}

// awaitNodeGone returns once a Node is gone that finalizers of others hold, and reports these finalizers.
func (t *terminator) awaitNodeGone(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	began, told := time.Now(), false
	for {
		left, err := t.objects.node(ctx, node.Name, string(node.UID))
		if err != nil || left == nil {
			return err
		}
		if !told && time.Since(began) >= tellAfter {
			told = true
			t.events.tellBoth(left, claim, corev1.EventTypeWarning, eventNodeHeld, fmt.Sprintf("The instance is gone, and Node %s is held by the finalizers %v.", left.Name, left.Finalizers))
		}
		if err := smithytime.SleepWithContext(ctx, goneEvery); err != nil {
			return fmt.Errorf("wait for Node %s, which is held by the finalizers %v: %w", left.Name, left.Finalizers, err)
		}
	}
}
