package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// PrepareLaunch reads the claims of a launch group and resolves what all of them allow into one fleet request. Claims
// that were deleted meanwhile are let go: nothing was launched for them.
func (a *Activities) PrepareLaunch(ctx context.Context, group workflows.LaunchGroup) (workflows.PreparedLaunch, error) {
	ctx, done := attend(ctx)
	defer done()
	wanted, err := a.wantedClaims(ctx, group)
	if err != nil || len(wanted) == 0 {
		return workflows.PreparedLaunch{}, err
	}
	first := wanted[0]
	class := a.nodeClass(first)
	if class == nil {
		return workflows.PreparedLaunch{}, giveUp(workflows.FailureNodeClassNotReady, "NodeClaim %s: its EC2NodeClass does not exist", first.Name)
	}
	switch resolved := class.Condition(karpv1.ConditionTypeReady); {
	case resolved == nil || resolved.Status == metav1.ConditionUnknown:
		// A class that was applied together with the claim is looked up in a moment: to be tried again, not given up.
		return workflows.PreparedLaunch{}, fmt.Errorf("NodeClaim %s: EC2NodeClass %s has not been resolved yet", first.Name, class.Name)
	case resolved.Status == metav1.ConditionFalse:
		return workflows.PreparedLaunch{}, giveUp(workflows.FailureNodeClassNotReady, "NodeClaim %s: EC2NodeClass %s is not Ready: %s", first.Name, class.Name, resolved.Message)
	}
	kinds, err := a.sold(ctx, first, class)
	if err != nil {
		return workflows.PreparedLaunch{}, cloudFailure("instance types of EC2NodeClass "+class.Name, err)
	}
	offerings, err := plan.Offerings(first, kinds, unavailable(group.Unavailable), time.Now(), a.MinValues)
	if err != nil {
		return workflows.PreparedLaunch{}, giveUp(workflows.FailureInsufficientCapacity, "%w", err)
	}
	request, err := a.Cloud.PrepareLaunch(ctx, cloud.LaunchSpec{
		Group: group.Group, Count: len(wanted), Class: class, NodePool: first.Labels[karpv1.NodePoolLabelKey],
		CapacityType: offerings[0].CapacityType, Offerings: offerings, Prices: overlaidPrices(kinds, offerings),
		Labels: registrationLabels(first), Taints: slices.Concat(first.Spec.Taints, first.Spec.StartupTaints), Requests: requested(wanted),
	})
	if err != nil {
		a.tellLaunchFailed(ctx, wanted, err)
		return workflows.PreparedLaunch{}, cloudFailure("prepare launch "+group.Group, err)
	}
	prepared := workflows.PreparedLaunch{Request: request}
	for _, claim := range wanted {
		prepared.Claims = append(prepared.Claims, workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)})
	}
	return prepared, nil
}

// requested are the names of the resources that any of the claims asks for, in order.
func requested(claims []*karpv1.NodeClaim) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	for _, claim := range claims {
		for name, quantity := range claim.Spec.Resources.Requests {
			if !quantity.IsZero() {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// wantedClaims returns the claims of a group that still want an instance, in the group's order, each with the finalizer
// that keeps it until its instance is gone.
func (a *Activities) wantedClaims(ctx context.Context, group workflows.LaunchGroup) ([]*karpv1.NodeClaim, error) {
	var wanted []*karpv1.NodeClaim
	for _, ref := range group.Claims {
		claim, err := a.objects.claim(ctx, ref)
		if err != nil {
			return nil, err
		}
		if claim == nil || claim.Status.ProviderID != "" {
			continue
		}
		if !claim.DeletionTimestamp.IsZero() {
			if err := a.objects.releaseClaim(ctx, claim); err != nil {
				return nil, err
			}
			continue
		}
		before := claim.DeepCopy()
		if controllerutil.AddFinalizer(claim, karpv1.TerminationFinalizer) {
			if err := a.objects.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
				return nil, fmt.Errorf("put the finalizer on NodeClaim %s: %w", claim.Name, err)
			}
		}
		wanted = append(wanted, claim)
	}
	return wanted, nil
}

// registrationLabels are the labels a node registers with: the claim's own. What depends on the machine that was
// launched comes with the Node's registration.
func registrationLabels(claim *karpv1.NodeClaim) map[string]string {
	labels := map[string]string{}
	for key, value := range claim.Labels {
		if key != corev1.LabelHostname {
			labels[key] = value
		}
	}
	return labels
}

// CreateFleet sends a launch. The request carries its token, so a second try is the same question.
func (a *Activities) CreateFleet(ctx context.Context, in workflows.CreateFleetInput) (workflows.Fleet, error) {
	ctx, done := attend(ctx)
	defer done()
	result, err := a.Cloud.Launch(ctx, in.Request)
	switch cloud.KindOf(err) {
	case "", cloud.InsufficientCapacity:
		a.Log.Info("fleet", zap.String("group", in.Request.Group), zap.Int("wanted", in.Request.Count), zap.Int("launched", len(result.Instances)),
			zap.Int("refused", len(result.Refused)))
		return fleet(result, in.Request), nil
	case cloud.ParameterMismatch:
		return workflows.Fleet{}, giveUp(workflows.FailureTokenSpent, "launch %s: %w", in.Request.Group, err)
	}
	a.tellLaunchRefsFailed(ctx, in.Claims, err)
	if cloud.KindOf(err) != cloud.StaleRequest && !cloud.Answered(err) {
		return workflows.Fleet{}, cloudFailure("launch "+in.Request.Group, err)
	}
	// The same question would bring the same answer, however long ago its cause has passed. The workflow waits before it
	// asks anew: here, a worker that is killed meanwhile would have the same token sent again.
	return workflows.Fleet{}, askAnew(in.Request.Group, activity.GetInfo(ctx).Attempt, err)
}

// askAnew has a launch prepared and sent once more under another token, since this try has launched nothing. Nobody knows
// that where the cloud does not say so, nor of an earlier try whose reply was lost: then the cloud is searched first.
func askAnew(group string, attempt int32, cause error) error {
	if attempt > 1 || cloud.Unsure(cause) {
		return giveUp(workflows.FailureTokenSpent, "launch %s: %w", group, cause)
	}
	return giveUp(workflows.FailureStaleRequest, "launch %s: %w", group, cause)
}

// fleet reduces a launch result to what workflows carry, with the price each instance had in the request.
func fleet(result cloud.LaunchResult, request cloud.LaunchRequest) workflows.Fleet {
	var out workflows.Fleet
	for _, instance := range result.Instances {
		reduced := reduceInstance(instance)
		for _, override := range request.Overrides {
			if override.InstanceType == instance.InstanceType && override.Zone == instance.Zone {
				reduced.Price = override.Price
				break
			}
		}
		out.Instances = append(out.Instances, reduced)
	}
	for _, refusal := range result.Refused {
		out.Refused = append(out.Refused, refusal.OfferingKey)
	}
	return out
}

func reduceInstance(i cloud.Instance) workflows.Instance {
	return workflows.Instance{ID: i.ID, ProviderID: i.ProviderID, InstanceType: i.InstanceType, Zone: i.Zone, ZoneID: i.ZoneID,
		CapacityType: i.CapacityType, Reservation: i.Reservation, Image: i.Image}
}

// startsAtOnce is how many workflows are started at the same time.
const startsAtOnce = 8

// StartNodeClaims starts the workflows of claims that have got their instances. One that runs already keeps the instance
// it was started with. One that an earlier try has started and that is over by now is started once more, finds its claim
// gone and ends.
func (a *Activities) StartNodeClaims(ctx context.Context, in workflows.StartNodeClaimsInput) (struct{}, error) {
	ctx, done := attend(ctx)
	defer done()
	starts, ctx := errgroup.WithContext(ctx)
	starts.SetLimit(startsAtOnce)
	for _, claim := range in.NodeClaims() {
		starts.Go(func() error {
			if _, err := a.Temporal.ExecuteWorkflow(ctx, workflows.NodeClaimOptions(claim).Client(), workflows.NodeClaimType, claim); err != nil {
				return fmt.Errorf("start NodeClaim workflow of %s: %w", claim.Claim.Name, err)
			}
			return nil
		})
	}
	return struct{}{}, starts.Wait()
}

// settleFor is how long FindInstances keeps looking before it believes that there is nothing: a launch whose reply was
// lost is visible well within that time, and what is not is terminated by the sweep.
const settleFor = 30 * time.Second

// FindInstances looks for the instances of a launch group that no claim has, and for the claims that have none.
func (a *Activities) FindInstances(ctx context.Context, in workflows.FindInstancesInput) (workflows.Found, error) {
	ctx, done := attend(ctx)
	defer done()
	until := time.Now()
	if in.Settle {
		// What earlier tries have waited counts, or a worker that keeps dying would never come to an end.
		info := activity.GetInfo(ctx)
		until = until.Add(settleFor - info.StartedTime.Sub(info.ScheduledTime))
	}
	search := search{free: map[string]bool{}, waiting: map[string]bool{}}
	for {
		found, err := a.unclaimed(ctx, in, search)
		if err != nil || len(found.Instances) >= len(found.Claims) || !time.Now().Before(until) {
			return found, err
		}
		if err := pause(ctx, goneEvery); err != nil {
			return found, fmt.Errorf("look for launch group %s: %w", in.Group, err)
		}
	}
}

// unclaimed returns the instances of a launch group that no claim has, and those of the given claims that have none. An
// instance belongs to the claim that names it, or whose running workflow was started with it. The instances are read
// first: one that is handed out meanwhile is seen with its claim. The API server is asked only where the mirror does not
// show an instance or a claim to be served, and once for each: nobody but the Launch that asks hands them out.
func (a *Activities) unclaimed(ctx context.Context, in workflows.FindInstancesInput, known search) (workflows.Found, error) {
	there, err := a.Cloud.Instances(ctx, cloud.Query{LaunchGroup: in.Group})
	if err != nil {
		return workflows.Found{}, cloudFailure("look for launch group "+in.Group, err)
	}
	there = slices.DeleteFunc(there, func(instance cloud.Instance) bool { return a.Mirror.ClaimByProviderID(instance.ProviderID) != nil })
	if slices.ContainsFunc(there, func(instance cloud.Instance) bool { return !known.free[instance.ID] }) {
		taken, err := a.takenInstances(ctx, in.Group)
		if err != nil {
			return workflows.Found{}, err
		}
		for _, instance := range there {
			known.free[instance.ID] = !taken[instance.ID]
		}
	}
	var found workflows.Found
	for _, instance := range there {
		if known.free[instance.ID] {
			found.Instances = append(found.Instances, reduceInstance(instance))
		}
	}
	for _, ref := range in.Claims {
		if !known.waiting[ref.UID] {
			served, err := a.served(ctx, ref)
			if err != nil {
				return workflows.Found{}, err
			}
			known.waiting[ref.UID] = !served
		}
		if known.waiting[ref.UID] {
			found.Claims = append(found.Claims, ref)
		}
	}
	return found, nil
}

// search is what a FindInstances has read already: instances that no claim has by id, and claims that have none by UID.
type search struct{ free, waiting map[string]bool }

// served says whether a claim has an instance, or a running workflow that was started with one.
func (a *Activities) served(ctx context.Context, ref workflows.ClaimRef) (bool, error) {
	if shown := a.Mirror.Claim(ref.Name); shown != nil && string(shown.UID) == ref.UID && shown.Status.ProviderID != "" {
		return true, nil
	}
	claim, err := a.objects.claim(ctx, ref)
	if err != nil || claim == nil || claim.Status.ProviderID != "" {
		return claim != nil, err
	}
	_, handed, err := a.executions.handedOut(ctx, a.Cluster.NodeClaimID(ref.Name))
	return handed, err
}

// takenInstances are the instances that claims have, by id.
func (a *Activities) takenInstances(ctx context.Context, group string) (map[string]bool, error) {
	claims, err := a.objects.listClaims(ctx)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for i := range claims {
		claim := &claims[i]
		id, has := InstanceID(claim.Status.ProviderID), claim.Status.ProviderID != ""
		if !has && launchGroup(claim) == group {
			if id, has, err = a.executions.handedOut(ctx, a.Cluster.NodeClaimID(claim.Name)); err != nil {
				return nil, err
			}
		}
		taken[id] = has
	}
	return taken, nil
}

// tellLaunchRefsFailed is tellLaunchFailed for claims that have to be read first.
func (a *Activities) tellLaunchRefsFailed(ctx context.Context, refs []workflows.ClaimRef, cause error) {
	var claims []*karpv1.NodeClaim
	for _, ref := range refs {
		if claim, err := a.objects.claim(ctx, ref); err == nil && claim != nil {
			claims = append(claims, claim)
		}
	}
	a.tellLaunchFailed(ctx, claims, cause)
}

// launchMessageMost bounds the message of a failed launch, as Karpenter does.
const launchMessageMost = 300

// tellLaunchFailed writes onto claims why they are not launched yet. Only people read it, so a failure to write it is
// logged and nothing more; throttling is not worth a write.
func (a *Activities) tellLaunchFailed(ctx context.Context, claims []*karpv1.NodeClaim, cause error) {
	switch cloud.KindOf(cause) {
	case cloud.Invalid, cloud.Forbidden, cloud.Transient:
	default:
		return
	}
	reason := cloud.ReasonOf(cause)
	if reason == "" {
		reason = "LaunchFailed"
	}
	for _, claim := range claims {
		if same := claim.Condition(karpv1.ConditionTypeLaunched); same != nil && same.Reason == reason {
			continue
		}
		if err := a.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionUnknown, Reason: reason,
				Message: fmt.Sprintf("%.*s", launchMessageMost, cause.Error())})
		}); err != nil {
			a.Log.Warn("could not say why a claim is not launched", zap.String("claim", claim.Name), zap.Error(err))
		}
	}
}

// throttleDelay is how long to wait after the cloud asked for fewer calls.
func throttleDelay(err error) time.Duration {
	var throttled *cloud.Error
	if errors.As(err, &throttled) && throttled.RetryAfter > 0 {
		return throttled.RetryAfter
	}
	return 2 * time.Second
}
