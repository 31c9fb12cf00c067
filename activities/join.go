package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/activities/nominate"
	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// joinFor is how long one Join waits for a registered node to initialize before it returns to be called again. It is longer
// than a registration may take and shorter than the activity's timeout. patience is how long a node may take before its
// claim says what it waits for.
const (
	joinFor  = 20 * time.Minute
	patience = time.Minute
)

// joiner brings nodes up, from the launch until they are initialized.
type joiner struct {
	objects   objects
	mirror    Mirror
	catalogue *catalogue
	instances instances
	keeper    *keeper
	nominator *nominate.Nominator
	events    recorder
	log       *zap.Logger
}

// Join brings a claim's node up: it records the launch on the claim, waits for the Node to join, registers it, waits until
// it is initialized, and records that on both objects. It skips each step that an earlier attempt has done.
func (j *joiner) Join(ctx context.Context, in workflows.JoinInput) (workflows.JoinResult, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	until := time.Now().Add(joinFor)
	claim, err := j.objects.claim(ctx, in.Claim)
	if err != nil {
		return workflows.JoinResult{}, err
	}
	if in.Instance, err = j.instances.ownInstance(ctx, claim, in.Instance); err != nil {
		return workflows.JoinResult{}, err
	}
	if claim == nil || !claim.DeletionTimestamp.IsZero() {
		return j.leaving(ctx, claim, in.Instance)
	}
	if claim, err = j.recordLaunch(ctx, claim, in.Instance); err != nil {
		return workflows.JoinResult{}, err
	}
	result := workflows.JoinResult{ExpireAt: claim.ExpiresAt()}
	node, failed, err := j.awaitRegistration(ctx, claim, in.Instance)
	if err != nil || failed != "" {
		result.Failed = failed
		return result, err
	}
	result.Node, result.NodeUID = node.Name, string(node.UID)
	fresh := !claim.IsTrue(karpv1.ConditionTypeInitialized) || activity.GetInfo(ctx).Attempt > 1
	result.Initialized, result.Failed, err = j.awaitInitialization(ctx, claim, node, until)
	// A node that is adopted came up long ago. One whose first try died may have come up just now.
	result.HooksDue = result.Initialized && fresh && hasHooks(j.mirror.NodePool(claim.Labels[karpv1.NodePoolLabelKey]), karpv1.AfterReady)
	return result, err
}

// recordLaunch writes onto the claim what was launched for it. It writes labels and annotations first, because the status
// says that all of it is known. The claim's own labels take precedence over the provider's. The annotation with the instance
// profile is what Karpenter goes by when it deletes instance profiles that nothing uses any more.
func (j *joiner) recordLaunch(ctx context.Context, claim *karpv1.NodeClaim, instance workflows.Instance) (*karpv1.NodeClaim, error) {
	if claim.IsTrue(karpv1.ConditionTypeLaunched) {
		return claim, nil
	}
	kind, err := j.catalogue.instanceType(ctx, claim, instance.InstanceType)
	if err != nil {
		return nil, err
	}
	labelled := claim.DeepCopy()
	keys := j.catalogue.cloud.Kind()
	labelled.Labels = launchedLabels(keys.Labels, claim, kind, instance)
	if instance.Profile != "" && keys.ProfileKey != "" {
		metav1.SetMetaDataAnnotation(&labelled.ObjectMeta, keys.ProfileKey, instance.Profile)
	}
	if err := j.objects.Patch(ctx, labelled, client.MergeFrom(claim)); err != nil {
		return nil, fmt.Errorf("label NodeClaim %s: %w", claim.Name, err)
	}
	if err := j.objects.changeStatus(ctx, labelled, func(launched *karpv1.NodeClaim) {
		launched.Status.ProviderID, launched.Status.ImageID = instance.ProviderID, instance.Image
		launched.Status.Capacity, launched.Status.Allocatable = hasGot(claim, kind, kind.Capacity), hasGot(claim, kind, kind.Allocatable)
		launched.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue})
		launched.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeRegistered, Status: metav1.ConditionUnknown, Reason: reasonNoNode, Message: "Node not registered with cluster"})
		launched.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: reasonNoNode, Message: "Node not registered with cluster"})
	}); err != nil {
		return nil, err
	}
	logs.Of(ctx, j.log).Info("launched", zap.String("claim", claim.Name), zap.String("pool", claim.Labels[karpv1.NodePoolLabelKey]),
		zap.String("instance", instance.ID), zap.String("type", instance.InstanceType), zap.String("zone", instance.Zone))
	return labelled, nil
}

// hasGot returns the resources of an instance without those that it has only on request and that the claim does not
// request.
func hasGot(claim *karpv1.NodeClaim, kind *cloud.InstanceType, resources corev1.ResourceList) corev1.ResourceList {
	got := maps.Clone(resources)
	for _, name := range kind.OnRequest {
		if asked := claim.Spec.Resources.Requests[name]; asked.IsZero() {
			delete(got, name)
		}
	}
	return got
}

// launchedLabels returns the claim's labels once its instance is known.
func launchedLabels(keys cloud.LabelKeys, claim *karpv1.NodeClaim, kind *cloud.InstanceType, instance workflows.Instance) map[string]string {
	labels := maps.Clone(kind.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelInstanceTypeStable] = instance.InstanceType
	labels[corev1.LabelTopologyZone] = instance.Zone
	labels[karpv1.CapacityTypeLabelKey] = instance.CapacityType
	if keys.Tenancy != "" {
		labels[keys.Tenancy] = plan.Tenancy(keys, claim)
	}
	if instance.ZoneID != "" && keys.ZoneID != "" {
		labels[keys.ZoneID] = instance.ZoneID
	}
	if instance.PlacementGroup != "" && keys.PlacementGroup != "" {
		labels[keys.PlacementGroup] = instance.PlacementGroup
	}
	if instance.Partition != "" && keys.Partition != "" {
		labels[keys.Partition] = instance.Partition
	}
	labelReservation(keys, labels, kind, instance.Reservation)
	maps.Copy(labels, claim.Labels)
	return labels
}

// labelReservation sets the labels of the capacity reservation that an instance runs in, and removes them if there is none.
// Of a reservation that the node class does not select only the id is known.
func labelReservation(keys cloud.LabelKeys, labels map[string]string, kind *cloud.InstanceType, id string) {
	for _, key := range []string{keys.ReservationID, keys.ReservationType, keys.ReservationInterruptible} {
		delete(labels, key)
	}
	if id == "" || keys.ReservationID == "" {
		return
	}
	labels[keys.ReservationID] = id
	for _, o := range kind.Offerings {
		if o.ReservationID == id {
			labels[keys.ReservationType] = o.ReservationType
			labels[keys.ReservationInterruptible] = strconv.FormatBool(o.ReservationInterruptible)
		}
	}
}

// labelPartition writes onto the claim in which partition of its placement group the instance runs, if nobody chose it: only the
// running instance says it. The node must not take pods without that label, which they may be spread by. An instance that the
// cloud no longer knows is none of its business.
func (j *joiner) labelPartition(ctx context.Context, claim *karpv1.NodeClaim, instance workflows.Instance) (*karpv1.NodeClaim, error) {
	keys := j.catalogue.cloud.Kind().Labels
	if keys.Partition == "" || claim.Labels[keys.PlacementGroup] == "" || claim.Labels[keys.Partition] != "" {
		return claim, nil
	}
	kind, err := j.catalogue.instanceType(ctx, claim, instance.InstanceType)
	if err != nil || len(kind.Partitions) == 0 {
		return claim, err
	}
	found, err := j.instances.cloud.Instances(ctx, cloud.Query{IDs: []string{instance.ID}})
	switch {
	case err != nil:
		return nil, cloudFailure("find the partition of "+instance.ID, err)
	case len(found) == 0 && time.Since(claim.CreationTimestamp.Time) > consistencyLag:
		return claim, nil
	case len(found) == 0 || found[0].Partition == "":
		return nil, fmt.Errorf("the cloud does not say yet in which partition of %s %s runs", claim.Labels[keys.PlacementGroup], instance.ID)
	}
	labelled := claim.DeepCopy()
	labelled.Labels[keys.Partition] = found[0].Partition
	if err := j.objects.Patch(ctx, labelled, client.MergeFrom(claim)); err != nil {
		return nil, fmt.Errorf("label NodeClaim %s: %w", claim.Name, err)
	}
	return labelled, nil
}

// awaitRegistration waits for the claim's Node and registers it. If the claim has to be removed instead, it returns the
// reason.
func (j *joiner) awaitRegistration(ctx context.Context, claim *karpv1.NodeClaim, instance workflows.Instance) (*corev1.Node, string, error) {
	waiting, stop := context.WithDeadline(ctx, registerBy(claim, time.Now()))
	defer stop()
	node, _, err := j.mirror.AwaitNode(waiting, claim.Status.ProviderID, func(node *corev1.Node, _ *karpv1.NodeClaim) bool { return node != nil })
	switch {
	case errors.Is(err, cluster.ErrClaimDeleted):
		return nil, workflows.ReasonClaimDeleted, nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		if err := j.mirror.Fresh(freshEnough); err != nil {
			return nil, "", fmt.Errorf("whether %s has registered cannot be said: %w", claim.Status.ProviderID, err)
		}
		return nil, workflows.ReasonRegistrationTimeout, nil
	case err != nil:
		return nil, "", fmt.Errorf("wait for the Node of %s: %w", claim.Status.ProviderID, err)
	}
	if !readiness.Registered(node) || !owned(node, claim) {
		if claim, err = j.labelPartition(ctx, claim, instance); err != nil {
			return nil, "", err
		}
		reserved, err := j.keeper.reserved(ctx, claim)
		if err != nil {
			return nil, "", err
		}
		if unguarded(node) {
			j.events.tellBoth(nil, claim, corev1.EventTypeWarning, eventTaintMissing, "Node "+node.Name+" has joined without the taint "+
				karpv1.UnregisteredTaintKey+", so that pods may have come to it before it was ready for them")
		}
		expects := reserved || j.nominator.Expects(claim)
		if node, err = j.objects.change(ctx, node, "register", func(node *corev1.Node) { register(node, claim, expects) }); err != nil {
			return nil, "", err
		}
		logs.Of(ctx, j.log).Info("registered", zap.String("claim", claim.Name), zap.String("node", node.Name), zap.String("pool", claim.Labels[karpv1.NodePoolLabelKey]))
	}
	if !claim.IsTrue(karpv1.ConditionTypeRegistered) {
		reason, message := j.unready(node, claim)
		if reason == "" {
			reason, message = reasonNotReady, "Waiting for the node to settle"
		}
		if err := j.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
			claim.Status.NodeName = node.Name
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeRegistered, Status: metav1.ConditionTrue})
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: reason, Message: message})
		}); err != nil {
			return nil, "", err
		}
	}
	return node, "", nil
}

// awaitInitialization waits until the registered node can serve pods, and records that.
func (j *joiner) awaitInitialization(ctx context.Context, claim *karpv1.NodeClaim, joined *corev1.Node, until time.Time) (initialized bool, failed string, err error) {
	told := ""
	for time.Now().Before(until) {
		waiting, stop := context.WithTimeout(ctx, patience)
		node, _, err := j.mirror.AwaitNode(waiting, claim.Status.ProviderID, func(node *corev1.Node, _ *karpv1.NodeClaim) bool {
			if node == nil {
				return true
			}
			reason, _ := j.unready(node, claim)
			return readiness.Registered(node) && (reason == "" || (reason == reasonResources || reason == reasonDevices) && readiness.Expecting(node))
		})
		stop()
		switch {
		case errors.Is(err, cluster.ErrClaimDeleted):
			return false, workflows.ReasonClaimDeleted, nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			if told, err = j.tellWaiting(ctx, claim, node, told); err != nil {
				return false, "", err
			}
			// The node should not wait longer than this for nominations.
			if node != nil && readiness.Expecting(node) {
				if _, err := j.objects.change(ctx, node, "open", open); err != nil {
					return false, "", err
				}
			}
			continue
		case err != nil:
			return false, "", fmt.Errorf("wait for Node of %s to initialize: %w", claim.Name, err)
		case node == nil:
			// The mirror may also be behind the worker that registered the node.
			if err := j.objects.gone(ctx, joined); err != nil {
				return false, "", err
			}
			return false, workflows.ReasonNodeDeleted, nil
		}
		if reason, _ := j.unready(node, claim); reason != "" {
			// Devices may take long to register, and pods that do not request them need not wait for them. Among these may be
			// the pods that register them.
			if _, err := j.nominator.Open(ctx, claim, node, func() error {
				_, err := j.objects.change(ctx, node, "open", open)
				return err
			}); err != nil {
				return false, "", err
			}
			continue
		}
		return true, "", j.initialize(ctx, node, claim)
	}
	return false, "", nil
}

// unready returns why a registered Node cannot serve pods yet, with the devices that its pods claim; an empty reason means that
// it can.
func (j *joiner) unready(node *corev1.Node, claim *karpv1.NodeClaim) (reason, message string) {
	if reason, message = initialization(node, claim); reason != "" {
		return reason, message
	}
	listed := strings.Split(claim.Annotations[karpv1.DRADriversAnnotationKey], ",")
	drivers := slices.DeleteFunc(listed, func(driver string) bool { return driver == "" })
	if driver := j.mirror.UnpublishedDriver(node.Name, drivers); driver != "" {
		return reasonDevices, fmt.Sprintf("DRA driver %q has not published a complete resource pool", driver)
	}
	return "", ""
}

// initialize marks the Node and the claim as initialized.
func (j *joiner) initialize(ctx context.Context, node *corev1.Node, claim *karpv1.NodeClaim) error {
	reserved, err := j.keeper.reserved(ctx, claim)
	if err != nil {
		return err
	}
	label := func() error {
		if node.Labels[karpv1.NodeInitializedLabelKey] == "true" && !readiness.Expecting(node) {
			return nil
		}
		_, err := j.objects.change(ctx, node, "initialize", func(node *corev1.Node) {
			node.Labels[karpv1.NodeInitializedLabelKey] = "true"
			if reserved {
				reserve(node)
			} else {
				open(node)
			}
		})
		return err
	}
	nominated := 0
	if readiness.Expecting(node) && !reserved {
		nominated, err = j.nominator.Open(ctx, claim, node, label)
	} else {
		err = label()
	}
	if err != nil {
		return err
	}
	if claim.IsTrue(karpv1.ConditionTypeInitialized) {
		return nil
	}
	if err := j.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
		claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue})
		if j.consolidatableAtOnce(claim) {
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeConsolidatable, Status: metav1.ConditionTrue})
		}
	}); err != nil {
		return err
	}
	logs.Of(ctx, j.log).Info("initialized", zap.String("claim", claim.Name), zap.String("node", node.Name), zap.String("pool", claim.Labels[karpv1.NodePoolLabelKey]),
		zap.Int("nominated", nominated))
	return nil
}

// tellWaiting writes onto the claim what its node is waiting for, when that has changed.
func (j *joiner) tellWaiting(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, told string) (string, error) {
	if node == nil {
		return told, nil
	}
	reason, message := j.unready(node, claim)
	if reason == "" || message == told {
		return told, nil
	}
	return message, j.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: reason, Message: message})
	})
}

// consolidatableAtOnce reports whether a claim's pool lets nodes be consolidated from the moment they are initialized, so
// that one write sets both conditions.
func (j *joiner) consolidatableAtOnce(claim *karpv1.NodeClaim) bool {
	pool := j.mirror.NodePool(claim.Labels[karpv1.NodePoolLabelKey])
	if pool == nil || pool.Spec.Replicas != nil {
		return false
	}
	after := pool.Spec.Disruption.ConsolidateAfter
	return !after.IsNever() && *after.Duration == 0
}

// leaving returns the result for a claim that is being deleted, or is gone if nil: the Node to be drained, if it has
// joined.
//
// The mirror may be behind, and different workers' mirrors differently so. Nothing that ends an instance is concluded from
// the mirror alone: if the Node's name is known, leaving reads the Node from the API server; otherwise the mirror has to be
// fresh.
func (j *joiner) leaving(ctx context.Context, claim *karpv1.NodeClaim, instance workflows.Instance) (workflows.JoinResult, error) {
	result := workflows.JoinResult{Failed: workflows.ReasonClaimDeleted}
	var node *corev1.Node
	if claim != nil && claim.Status.NodeName != "" {
		node = &corev1.Node{}
		if err := j.objects.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node); err != nil {
			return result, ignoreNotFound("read Node "+claim.Status.NodeName, err)
		}
		if node.Spec.ProviderID != instance.ProviderID {
			return result, nil // another instance has the name now
		}
	} else {
		if err := j.mirror.Fresh(freshEnough); err != nil {
			return result, fmt.Errorf("look for the Node of %s: %w", instance.ProviderID, err)
		}
		node = j.mirror.NodeByProviderID(instance.ProviderID)
	}
	if node != nil {
		result.Node, result.NodeUID = node.Name, string(node.UID)
	}
	return result, nil
}

// registerBy returns by when a claim's Node must have joined. A wait that begins late, because no worker could see the
// cluster, still gets the time of patience: the Node could not join either while the API server was down.
func registerBy(claim *karpv1.NodeClaim, now time.Time) time.Time {
	by := claim.Condition(karpv1.ConditionTypeLaunched).LastTransitionTime.Add(workflows.RegistrationTimeout)
	if least := now.Add(patience); by.Before(least) {
		return least
	}
	return by
}
