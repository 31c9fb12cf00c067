package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
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
	kinds, err := a.Cloud.InstanceTypes(ctx, class)
	if err != nil {
		return workflows.PreparedLaunch{}, cloudFailure("instance types of EC2NodeClass "+class.Name, err)
	}
	offerings, err := plan.Offerings(first, kinds, nil, time.Now(), a.MinValues)
	if err != nil {
		return workflows.PreparedLaunch{}, giveUp(workflows.FailureInsufficientCapacity, "NodeClaim %s: %w", first.Name, err)
	}
	request, err := a.Cloud.PrepareLaunch(ctx, cloud.LaunchSpec{
		Group: group.Group, Count: len(wanted), Class: class, NodePool: first.Labels[karpv1.NodePoolLabelKey],
		CapacityType: offerings[0].CapacityType, Offerings: offerings,
		Labels: registrationLabels(first), Taints: slices.Concat(first.Spec.Taints, first.Spec.StartupTaints),
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

// wantedClaims returns the claims of a group that still want an instance, in the group's order, each with the finalizer
// that keeps it until its instance is gone.
func (a *Activities) wantedClaims(ctx context.Context, group workflows.LaunchGroup) ([]*karpv1.NodeClaim, error) {
	var wanted []*karpv1.NodeClaim
	for _, ref := range group.Claims {
		claim, err := a.claim(ctx, ref)
		if err != nil {
			return nil, err
		}
		if claim == nil || claim.Status.ProviderID != "" {
			continue
		}
		if !claim.DeletionTimestamp.IsZero() {
			if err := a.releaseClaim(ctx, claim); err != nil {
				return nil, err
			}
			continue
		}
		before := claim.DeepCopy()
		if controllerutil.AddFinalizer(claim, karpv1.TerminationFinalizer) {
			if err := a.Kube.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
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
		// The token is spent on another request, so somebody may have launched for this group: look before anything else.
		found, findErr := a.findInstances(ctx, workflows.FindInstancesInput{Group: in.Request.Group, Want: in.Request.Count, Settle: true})
		if findErr != nil || len(found.Instances) > 0 {
			return found, findErr
		}
		return workflows.Fleet{}, giveUp(workflows.FailureStaleRequest, "launch %s: %w", in.Request.Group, err)
	default:
		a.tellLaunchRefsFailed(ctx, in.Claims, err)
		return workflows.Fleet{}, cloudFailure("launch "+in.Request.Group, err)
	}
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
		CapacityType: i.CapacityType, Image: i.Image}
}

// FindInstances looks for the instances of a launch group that no claim has yet.
func (a *Activities) FindInstances(ctx context.Context, in workflows.FindInstancesInput) (workflows.Fleet, error) {
	ctx, done := attend(ctx)
	defer done()
	return a.findInstances(ctx, in)
}

// settleFor is how long findInstances keeps looking before it believes that there is nothing: a launch whose reply was
// lost is visible well within that time, and what is not is terminated by the sweep.
const settleFor = 30 * time.Second

func (a *Activities) findInstances(ctx context.Context, in workflows.FindInstancesInput) (workflows.Fleet, error) {
	until := time.Now()
	if in.Settle {
		until = until.Add(settleFor)
	}
	for {
		fleet, err := a.unclaimed(ctx, in.Group)
		if err != nil || len(fleet.Instances) >= in.Want || !time.Now().Before(until) {
			return fleet, err
		}
		if err := pause(ctx, goneEvery); err != nil {
			return fleet, fmt.Errorf("look for launch group %s: %w", in.Group, err)
		}
	}
}

// unclaimed returns the instances of a launch group that are on no NodeClaim.
func (a *Activities) unclaimed(ctx context.Context, group string) (workflows.Fleet, error) {
	found, err := a.Cloud.Instances(ctx, cloud.Query{LaunchGroup: group})
	if err != nil {
		return workflows.Fleet{}, cloudFailure("look for launch group "+group, err)
	}
	claims, err := a.listClaims(ctx)
	if err != nil {
		return workflows.Fleet{}, err
	}
	taken := make(map[string]bool, len(claims))
	for i := range claims {
		taken[claims[i].Status.ProviderID] = true
	}
	var fleet workflows.Fleet
	for _, instance := range found {
		if !taken[instance.ProviderID] {
			fleet.Instances = append(fleet.Instances, reduceInstance(instance))
		}
	}
	return fleet, nil
}

// tellLaunchRefsFailed is tellLaunchFailed for claims that have to be read first.
func (a *Activities) tellLaunchRefsFailed(ctx context.Context, refs []workflows.ClaimRef, cause error) {
	var claims []*karpv1.NodeClaim
	for _, ref := range refs {
		if claim, err := a.claim(ctx, ref); err == nil && claim != nil {
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
		before := claim.DeepCopy()
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionUnknown, Reason: reason,
			Message: fmt.Sprintf("%.*s", launchMessageMost, cause.Error())})
		if same := before.Condition(karpv1.ConditionTypeLaunched); same != nil && same.Reason == reason {
			continue
		}
		if err := a.patchStatus(ctx, claim, before); err != nil {
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
