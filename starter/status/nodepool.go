package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// maxCounts is how long the resource totals of a NodePool may be behind while its nodes change all the time.
	maxCounts = 10 * time.Second
)

// NodePoolMirror is the part of the mirror that NodePools reads.
type NodePoolMirror interface {
	WaitSynced(ctx context.Context) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	NodePools() []*karpv1.NodePool
	Pauses() []karpv1.Pause
	Windows() karpv1.MaintenanceWindows
	NodeClass(name string) cloud.NodeClass
	Claims() []*karpv1.NodeClaim
	NodeByProviderID(id string) *corev1.Node
	PublishedDevices() plan.DeviceTemplates
}

// NodePools keeps the status and the annotations of every NodePool up to date: whether it may be used and why not, the
// resource totals of its nodes, the hash of its template, and what is learnt of its nodes' devices (learntdevices.go). All of it follows from the mirror, so that a pass may be
// repeated at will; what has not changed is not written. Totals are written when two passes have found the same, as
// nodes come and go in bursts.
type NodePools struct {
	kind   cloud.Kind
	kube   kube.Client
	mirror NodePoolMirror
	log    *zap.Logger
	now    func() time.Time
	// Limits says how far the budgets of the whole cluster and the rates are used up; nil shows nothing.
	Limits func() []plan.Limit
	// limited says that the last pass has found one that is used up.
	limited bool
	// counts are the totals that were found and not written, by NodePool.
	counts map[string]count
}

// count is the totals at the last look at a NodePool, and since when its status shows others.
type count struct {
	resources corev1.ResourceList
	since     time.Time
}

// NewNodePools returns the NodePools of a cluster; Run does the work. client must not read from a cache.
func NewNodePools(kind cloud.Kind, client kube.Client, mirror NodePoolMirror, log *zap.Logger) *NodePools {
	return &NodePools{kind: kind, kube: client, mirror: mirror, log: log, now: time.Now}
}

// Run keeps the NodePools until ctx ends. The first change of a condition after a quiet time shows at once; during a
// burst, each pool is written once every statusEvery.
func (s *NodePools) Run(ctx context.Context) error {
	return loop{
		what: "NodePool status", rest: statusEvery,
		kinds: []cluster.EventKind{cluster.PoolChanged, cluster.ClassChanged, cluster.ClaimChanged, cluster.NodeChanged, cluster.DevicesPublished},
		look: func(ctx context.Context) (again time.Duration, err error) {
			err = s.pass(ctx)
			switch {
			case len(s.counts) > 0:
				again = atOnce
			case s.limited:
				again = limitsAgain
			}
			return again, err
		},
	}.run(ctx, s.mirror, s.log)
}

// pass brings every NodePool up to date.
func (s *NodePools) pass(ctx context.Context) error {
	claims := map[string][]*karpv1.NodeClaim{}
	for _, claim := range s.mirror.Claims() {
		if pool := claim.Labels[karpv1.NodePoolLabelKey]; pool != "" {
			claims[pool] = append(claims[pool], claim)
		}
	}
	var errs []error
	published := s.mirror.PublishedDevices()
	held := s.counts
	s.counts, s.limited = map[string]count{}, false
	var limits []plan.Limit
	if s.Limits != nil {
		limits = s.Limits()
	}
	for _, pool := range s.mirror.NodePools() {
		if before, was := held[pool.Name]; was {
			s.counts[pool.Name] = before
		}
		if err := s.keep(ctx, pool.DeepCopy(), claims[pool.Name], published, limits); err != nil {
			errs = append(errs, fmt.Errorf("NodePool %s: %w", pool.Name, err))
		}
	}
	return errors.Join(errs...)
}

// keep brings one NodePool up to date. A conflict means that the mirror is behind; its next change brings the pool back
// here.
func (s *NodePools) keep(ctx context.Context, pool *karpv1.NodePool, claims []*karpv1.NodeClaim, published plan.DeviceTemplates, limits []plan.Limit) error {
	var err error
	if !pool.Observed() {
		err = s.keepHash(ctx, pool, claims)
	}
	if err == nil {
		err = s.keepDevices(ctx, pool, published)
	}
	if err == nil {
		err = s.keepStatus(ctx, pool, claims, limits)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// keepHash writes the hash of the pool's template to the pool, and to the claims whose hash cannot be compared.
func (s *NodePools) keepHash(ctx context.Context, pool *karpv1.NodePool, claims []*karpv1.NodeClaim) error {
	hash, err := pool.Hash()
	if err != nil {
		return err
	}
	if err := nodePoolHash().renew(ctx, s.kube, claims, hash); err != nil {
		return err
	}
	return patch(ctx, s.kube, pool, func() { nodePoolHash().put(pool, hash) })
}

// keepStatus brings the pool's status up to date.
func (s *NodePools) keepStatus(ctx context.Context, pool *karpv1.NodePool, claims []*karpv1.NodeClaim, limits []plan.Limit) error {
	before := pool.DeepCopy()
	pool.SetCondition(validationSucceeded(pool))
	pool.SetCondition(nodeClassReady(s.kind, pool, s.mirror.NodeClass))
	if paused, some := pausedCondition(s.mirror.Pauses(), pool, s.now()); some {
		pool.SetCondition(paused)
	} else {
		pool.ClearCondition(karpv1.ConditionTypePaused)
	}
	s.keepWindow(pool)
	s.limited = keepLimits(pool, limits) || s.limited
	resources := s.poolResources(claims)
	if !equality.Semantic.DeepEqual(before.Status, pool.Status) || s.settled(pool, resources) {
		delete(s.counts, pool.Name)
		nodes := resources[karpv1.ResourceNodes]
		pool.Status.Resources, pool.Status.Nodes = resources, new(nodes.Value())
	}
	if equality.Semantic.DeepEqual(before.Status, pool.Status) {
		return nil
	}
	return s.kube.Status().Patch(ctx, pool, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
}

// settled says whether a pool's totals may be written now: nothing was written yet, the written totals are correct, two
// passes have found the same, or they have been changing for maxCounts.
func (s *NodePools) settled(pool *karpv1.NodePool, resources corev1.ResourceList) bool {
	last, held := s.counts[pool.Name]
	switch {
	case pool.Status.Nodes == nil || equality.Semantic.DeepEqual(pool.Status.Resources, resources):
		return true
	case !held:
		last.since = s.now()
	case equality.Semantic.DeepEqual(last.resources, resources) || s.now().Sub(last.since) >= maxCounts:
		return true
	}
	last.resources = resources
	s.counts[pool.Name] = last
	return false
}

// poolResources returns the totals of a pool's nodes: the Node's capacity once it is initialized, and what was bought
// until then. Claims without an instance have no node yet. The usual resources are present even when they are zero.
func (s *NodePools) poolResources(claims []*karpv1.NodeClaim) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage, karpv1.ResourceNodes,
	} {
		sum[name] = resource.Quantity{}
	}
	for _, claim := range claims {
		if claim.Status.ProviderID == "" {
			continue
		}
		capacity := claim.Status.Capacity
		if node := s.mirror.NodeByProviderID(claim.Status.ProviderID); node != nil && node.Labels[karpv1.NodeInitializedLabelKey] == "true" {
			capacity = node.Status.Capacity
		}
		addResources(sum, capacity)
		addResources(sum, corev1.ResourceList{karpv1.ResourceNodes: *resource.NewQuantity(1, resource.DecimalSI)})
	}
	return sum
}

// addResources adds to sum the quantities of more that are not zero.
func addResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		if quantity.IsZero() {
			continue
		}
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// validationSucceeded returns the condition that says whether the pool keeps the rules that the API server could not
// check.
func validationSucceeded(pool *karpv1.NodePool) metav1.Condition {
	condition := metav1.Condition{Type: karpv1.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue}
	if errs := pool.Validate(); len(errs) > 0 {
		message := errs.ToAggregate().Error()
		condition.Status, condition.Reason = metav1.ConditionFalse, karpv1.ReasonNodePoolValidationFailed
		condition.Message = fitting(message)
	}
	return condition
}

// pausedCondition returns the condition that says what is paused for the pool, and whether anything is.
func pausedCondition(everywhere []karpv1.Pause, pool *karpv1.NodePool, now time.Time) (condition metav1.Condition, some bool) {
	var reasons, messages []string
	for _, scope := range karpv1.PauseScopes() {
		stop := karpv1.StopOf(scope, everywhere, pool, now)
		if stop == nil {
			continue
		}
		reason := strings.ToUpper(string(scope[:1])) + string(scope[1:])
		if stop.Observe {
			reason = "Observed"
		}
		if !slices.Contains(reasons, reason) {
			reasons, messages = append(reasons, reason), append(messages, stop.String())
		}
	}
	return metav1.Condition{Type: karpv1.ConditionTypePaused, Status: metav1.ConditionTrue, Reason: strings.Join(reasons, "And"),
		Message: fitting(strings.Join(messages, "; "))}, len(reasons) > 0
}

// nodeClassReady returns the condition that says whether the class of the pool can be used.
func nodeClassReady(kind cloud.Kind, pool *karpv1.NodePool, find func(name string) cloud.NodeClass) metav1.Condition {
	condition := metav1.Condition{Type: karpv1.ConditionTypeNodeClassReady, Status: metav1.ConditionFalse}
	ref := pool.Spec.Template.Spec.NodeClassRef
	ours := ref != nil && ref.Group == kind.Group && ref.Kind == kind.Kind
	var class cloud.NodeClass
	if ours {
		class = find(ref.Name)
	}
	switch {
	case ref == nil:
		condition.Reason, condition.Message = karpv1.ReasonNodeClassNotFound, "spec.template.spec.nodeClassRef is not set"
	case !ours:
		condition.Reason = karpv1.ReasonNodeClassNotFound
		condition.Message = fmt.Sprintf("spec.template.spec.nodeClassRef: node classes are of the kind %s in the group %s, not %s in %q",
			kind.Kind, kind.Group, ref.Kind, ref.Group)
	case class == nil:
		condition.Reason, condition.Message = karpv1.ReasonNodeClassNotFound, fmt.Sprintf("there is no %s %q", ref.Kind, ref.Name)
	case class.GetDeletionTimestamp() != nil:
		condition.Reason, condition.Message = karpv1.ReasonNodeClassTerminating, fmt.Sprintf("%s %q is being deleted", ref.Kind, ref.Name)
	default:
		ready := class.Condition(karpv1.ConditionTypeReady)
		if ready == nil || ready.ObservedGeneration < class.GetGeneration() {
			condition.Status, condition.Reason = metav1.ConditionUnknown, karpv1.ReasonNodeClassReadinessUnknown
			condition.Message = fmt.Sprintf("%s %q has not been looked at since it changed", ref.Kind, ref.Name)
			break
		}
		condition.Status = ready.Status
		if ready.Status != metav1.ConditionTrue {
			condition.Reason, condition.Message = ready.Reason, ready.Message
		}
		if ready.Status == metav1.ConditionUnknown {
			condition.Reason = karpv1.ReasonNodeClassReadinessUnknown
		}
	}
	return condition
}
