package activities

import (
	"context"
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
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// launcher launches instances for claims, and starts the NodeClaim workflows of those that have got one.
type launcher struct {
	objects    objects
	catalogue  *catalogue
	cloud      cloud.Provider
	executions executions
	// minValues decides what happens to claims whose NodePool's minValues cannot be met.
	minValues plan.MinValuesPolicy
	events    recorder
	log       *zap.Logger
}

// PrepareLaunch reads the claims of a launch group and resolves what all of them allow into one fleet request. It releases
// claims that were deleted meanwhile, because nothing was launched for them.
func (l *launcher) PrepareLaunch(ctx context.Context, group workflows.LaunchGroup) (workflows.PreparedLaunch, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	wanted, err := l.wantedClaims(ctx, group)
	if err != nil || len(wanted) == 0 {
		return workflows.PreparedLaunch{}, err
	}
	first := wanted[0]
	class := l.catalogue.nodeClass(first)
	if class == nil {
		return workflows.PreparedLaunch{}, giveUp(workflows.FailureNodeClassNotReady, "NodeClaim %s: its node class does not exist", first.Name)
	}
	kind := first.Spec.NodeClassRef.Kind
	switch resolved := class.Condition(karpv1.ConditionTypeReady); {
	case resolved == nil || resolved.Status == metav1.ConditionUnknown:
		// A class that was applied together with the claim will be resolved in a moment, so retry instead of giving up.
		return workflows.PreparedLaunch{}, fmt.Errorf("NodeClaim %s: %s %s has not been resolved yet", first.Name, kind, class.GetName())
	case resolved.Status == metav1.ConditionFalse:
		return workflows.PreparedLaunch{}, giveUp(workflows.FailureNodeClassNotReady, "NodeClaim %s: %s %s is not Ready: %s", first.Name, kind, class.GetName(), resolved.Message)
	}
	kinds, err := l.catalogue.sold(ctx, first, class)
	if err != nil {
		return workflows.PreparedLaunch{}, cloudFailure("instance types of "+kind+" "+class.GetName(), err)
	}
	keys := l.cloud.Kind().Labels
	offerings, err := plan.Offerings(keys, first, kinds, unavailable(group.Unavailable), time.Now(), l.minValues)
	if err != nil {
		return workflows.PreparedLaunch{}, giveUp(workflows.FailureInsufficientCapacity, "%w", err)
	}
	request, err := l.cloud.PrepareLaunch(ctx, cloud.LaunchSpec{
		Group: group.Group, Count: len(wanted), Class: class, NodePool: first.Labels[karpv1.NodePoolLabelKey],
		CapacityType: offerings[0].CapacityType, Tenancy: plan.Tenancy(keys, first), Partition: plan.Partition(keys, first, kinds), Offerings: offerings,
		Prices: overlaidPrices(kinds, offerings),
		Labels: registrationLabels(first), Taints: slices.Concat(first.Spec.Taints, first.Spec.StartupTaints), Requests: requested(wanted),
	})
	if err != nil {
		l.tellLaunchFailed(ctx, wanted, err)
		return workflows.PreparedLaunch{}, cloudFailure("prepare launch "+group.Group, err)
	}
	prepared := workflows.PreparedLaunch{Request: request}
	for _, claim := range wanted {
		prepared.Claims = append(prepared.Claims, workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)})
	}
	return prepared, nil
}

// requested returns the sorted names of the resources that any of the claims requests.
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
func (l *launcher) wantedClaims(ctx context.Context, group workflows.LaunchGroup) ([]*karpv1.NodeClaim, error) {
	var wanted []*karpv1.NodeClaim
	for _, ref := range group.Claims {
		claim, err := l.objects.claim(ctx, ref)
		if err != nil {
			return nil, err
		}
		if claim == nil || claim.Status.ProviderID != "" {
			continue
		}
		if !claim.DeletionTimestamp.IsZero() {
			if err := l.objects.releaseClaim(ctx, claim); err != nil {
				return nil, err
			}
			continue
		}
		before := claim.DeepCopy()
		if controllerutil.AddFinalizer(claim, karpv1.TerminationFinalizer) {
			if err := l.objects.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
				return nil, fmt.Errorf("put the finalizer on NodeClaim %s: %w", claim.Name, err)
			}
		}
		wanted = append(wanted, claim)
	}
	return wanted, nil
}

// registrationLabels returns the labels a node registers with: the claim's own, except the hostname. Labels that depend on
// the launched instance are added when the Node is registered.
func registrationLabels(claim *karpv1.NodeClaim) map[string]string {
	labels := map[string]string{}
	for key, value := range claim.Labels {
		if key != corev1.LabelHostname {
			labels[key] = value
		}
	}
	return labels
}

// CreateFleet sends a launch. The request carries its client token, so a second attempt asks for the same launch. Nothing is
// sent while somebody has paused launches: the workflow then looks for what an earlier attempt may have launched.
func (l *launcher) CreateFleet(ctx context.Context, in workflows.CreateFleetInput) (workflows.Fleet, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	stopped, err := stops{objects: l.objects}.of(ctx, karpv1.PauseProvisioning, in.NodePool)
	if err != nil {
		return workflows.Fleet{}, err
	}
	if stop := stopped[in.NodePool]; stop != nil {
		return workflows.Fleet{}, giveUp(workflows.FailurePaused, "%s", stop)
	}
	if moved, err := l.movedOn(ctx, in.Claims, activity.GetInfo(ctx).ScheduledTime, time.Now()); moved || err != nil {
		if err != nil {
			return workflows.Fleet{}, err
		}
		return workflows.Fleet{}, giveUp(workflows.FailureTokenSpent, "launch %s: some of its claims are gone, or have an instance", in.Request.Group)
	}
	result, err := l.cloud.Launch(ctx, in.Request)
	switch cloud.KindOf(err) {
	case "", cloud.InsufficientCapacity:
		logs.Of(ctx, l.log).Info("fleet", zap.String("group", in.Request.Group), zap.Int("wanted", in.Request.Count), zap.Int("launched", len(result.Instances)),
			zap.Int("refused", len(result.Refused)))
		return fleet(result), nil
	case cloud.ParameterMismatch:
		return workflows.Fleet{}, giveUp(workflows.FailureTokenSpent, "launch %s: %w", in.Request.Group, err)
	}
	l.tellLaunchRefsFailed(ctx, in.Claims, err)
	if cloud.KindOf(err) != cloud.StaleRequest && !cloud.Answered(err) {
		return workflows.Fleet{}, cloudFailure("launch "+in.Request.Group, err)
	}
	// The same request would get the same answer, even long after the cause has passed. The workflow, not the activity,
	// waits before it asks anew: a worker killed while it waits here would have the same token sent again.
	return workflows.Fleet{}, askAnew(in.Request.Group, activity.GetInfo(ctx).Attempt, err)
}

// forgottenAfter is how long a launch may wait to be sent before its claims are read once more.
const forgottenAfter = 30 * time.Second

// movedOn reports whether any claim of a launch no longer waits for it, although it did when the launch was recorded. A launch
// that is sent much later than it was recorded may come from a backup of Temporal and have been sent before; and if that is long
// ago, EC2 no longer knows its token.
func (l *launcher) movedOn(ctx context.Context, claims []workflows.ClaimRef, scheduled, now time.Time) (bool, error) {
	if now.Sub(scheduled) < forgottenAfter {
		return false, nil
	}
	for _, ref := range claims {
		claim, err := l.objects.claim(ctx, ref)
		if err != nil {
			return false, err
		}
		if claim == nil || claim.Status.ProviderID != "" {
			return true, nil
		}
	}
	return false, nil
}

// askAnew returns the failure after which the launch is prepared and sent once more under another token, because this
// attempt has launched nothing. If the cloud does not say that it launched nothing, or an earlier attempt's reply may have
// been lost, the failure is one after which the cloud is searched first.
func askAnew(group string, attempt int32, cause error) error {
	if attempt > 1 || cloud.Unsure(cause) {
		return giveUp(workflows.FailureTokenSpent, "launch %s: %w", group, cause)
	}
	return giveUp(workflows.FailureStaleRequest, "launch %s: %w", group, cause)
}

// fleet reduces a launch result to what workflows carry.
func fleet(result cloud.LaunchResult) workflows.Fleet {
	var out workflows.Fleet
	for _, instance := range result.Instances {
		out.Instances = append(out.Instances, reduceInstance(instance))
	}
	for _, refusal := range result.Refused {
		out.Refused = append(out.Refused, refusal.OfferingKey)
	}
	return out
}

// startsAtOnce is how many workflows are started at the same time.
const startsAtOnce = 8

// StartNodeClaims starts the workflows of claims that have got their instances. A workflow that already runs keeps the
// instance it was started with. If an earlier attempt has started a workflow that is over by now, the workflow starts once
// more, finds its claim gone and ends.
func (l *launcher) StartNodeClaims(ctx context.Context, in workflows.StartNodeClaimsInput) (struct{}, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	starts, ctx := errgroup.WithContext(ctx)
	starts.SetLimit(startsAtOnce)
	for _, claim := range in.NodeClaims() {
		starts.Go(func() error {
			if _, err := l.executions.ExecuteWorkflow(ctx, workflows.NodeClaimOptions(claim).Client(), workflows.NodeClaimType, claim); err != nil {
				return fmt.Errorf("start NodeClaim workflow of %s: %w", claim.Claim.Name, err)
			}
			return nil
		})
	}
	return struct{}{}, starts.Wait()
}

// tellLaunchRefsFailed reads the claims and calls tellLaunchFailed for them.
func (l *launcher) tellLaunchRefsFailed(ctx context.Context, refs []workflows.ClaimRef, cause error) {
	var claims []*karpv1.NodeClaim
	for _, ref := range refs {
		if claim, err := l.objects.claim(ctx, ref); err == nil && claim != nil {
			claims = append(claims, claim)
		}
	}
	l.tellLaunchFailed(ctx, claims, cause)
}

// reasonLaunchFailed says that the cloud does not launch the instance, with its error, where the error has no reason of its own.
const reasonLaunchFailed = "LaunchFailed"

// maxLaunchMessage limits the length of the message of a failed launch, as in Karpenter.
const maxLaunchMessage = 300

// tellLaunchFailed writes onto claims why they are not launched yet. Only people read it, so a failure to write it is
// logged and nothing more; throttling is not worth a write.
func (l *launcher) tellLaunchFailed(ctx context.Context, claims []*karpv1.NodeClaim, cause error) {
	switch cloud.KindOf(cause) {
	case cloud.Invalid, cloud.Forbidden, cloud.Transient:
	default:
		return
	}
	reason := cloud.ReasonOf(cause)
	if reason == "" {
		reason = reasonLaunchFailed
	}
	for _, claim := range claims {
		if same := claim.Condition(karpv1.ConditionTypeLaunched); same != nil && same.Reason == reason {
			continue
		}
		if err := l.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionUnknown, Reason: reason,
				Message: fmt.Sprintf("%.*s", maxLaunchMessage, cause.Error())})
		}); err != nil {
			logs.Of(ctx, l.log).Warn("could not say why a claim is not launched", zap.String("claim", claim.Name), zap.Error(err))
		}
	}
}

// overlaidPrices returns the prices of those offerings whose price is set by overlays.
func overlaidPrices(kinds []*cloud.InstanceType, offerings []cloud.OfferingKey) map[cloud.OfferingKey]float64 {
	prices := map[cloud.OfferingKey]float64{}
	for _, kind := range kinds {
		for i := range kind.Offerings {
			if o := &kind.Offerings[i]; o.Overlaid {
				prices[o.Key(kind)] = o.Price
			}
		}
	}
	maps.DeleteFunc(prices, func(key cloud.OfferingKey, _ float64) bool { return !slices.Contains(offerings, key) })
	return prices
}
