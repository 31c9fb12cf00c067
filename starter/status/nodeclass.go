package status

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
)

const (
	// resolveEvery is the interval at which a node class is resolved again. Karpenter asks for subnets once a minute;
	// the provider itself caches what may be older.
	resolveEvery = time.Minute
	// releaseEvery is the interval between looks at a deleted class that is in use, without a change of claims.
	releaseEvery = time.Minute
	// reasonResolveFailed is the reason of a class that could not be resolved if the error names none.
	reasonResolveFailed = "ResolveFailed"
)

// NodeClassMirror is the part of the mirror that NodeClasses reads.
type NodeClassMirror interface {
	WaitSynced(ctx context.Context) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	NodeClass(name string) *awsv1.EC2NodeClass
	NodeClasses() []*awsv1.EC2NodeClass
	Claims() []*karpv1.NodeClaim
}

// NodeClassCloud is the part of a provider that NodeClasses calls.
type NodeClassCloud interface {
	ResolveNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) (awsv1.EC2NodeClassStatus, error)
	ReleaseNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) error
}

// NodeClasses keeps the status of every EC2NodeClass up to date: what its selectors match now, and whether nodes can be
// launched from it. A deleted class is kept until no claim uses it and nothing made for it is left.
type NodeClasses struct {
	mirror NodeClassMirror
	kube   kube.Client
	cloud  NodeClassCloud
	// events records what a class waits for; nil records nothing.
	events record.EventRecorder
	log    *zap.Logger
	// caBundle is the cluster's certificate bundle in base64. It is part of the hash.
	caBundle string
	now      func() time.Time
	queue    workqueue.TypedRateLimitingInterface[string]
	// resolved says until when a class need not be resolved again. Only the one worker goroutine uses it.
	resolved map[string]resolution
}

// resolution is until when a class counts as resolved, and which class that is.
type resolution struct {
	uid        types.UID
	generation int64
	until      time.Time
}

// NewNodeClasses returns the NodeClasses of a cluster; Run does the work. client must not read from a cache. caBundle
// is what ClusterCA returns.
func NewNodeClasses(mirror NodeClassMirror, client kube.Client, cloud NodeClassCloud, caBundle string, events record.EventRecorder, log *zap.Logger) *NodeClasses {
	return &NodeClasses{
		mirror: mirror, kube: client, cloud: cloud, caBundle: caBundle, events: events, log: log, now: time.Now,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)),
		resolved: map[string]resolution{},
	}
}

// ClusterCA returns the certificate bundle that a configuration trusts, in base64, as it is used in the hash of a node
// class. It is empty if the configuration relies on the system's.
func ClusterCA(config *rest.Config) (string, error) {
	loaded := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return "", fmt.Errorf("read the cluster's certificate bundle: %w", err)
	}
	return base64.StdEncoding.EncodeToString(loaded.CAData), nil
}

// Run keeps the EC2NodeClasses until ctx ends. Only the holder of the Lease may call it, and at most once.
func (s *NodeClasses) Run(ctx context.Context) error {
	// Claims that have not been listed yet would look as if they were gone, and what they need would be removed.
	if err := s.mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("EC2NodeClass status: wait for the mirror: %w", err)
	}
	events := s.mirror.Subscribe(cluster.ClassChanged, cluster.ClaimChanged)
	defer events.Close()
	for _, class := range s.mirror.NodeClasses() {
		s.queue.Add(class.Name)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.work(ctx); return nil })
	group.Go(func() error {
		defer s.queue.ShutDown()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-events.C:
				s.enqueue(events.Take())
			}
		}
	})
	return group.Wait()
}

// enqueue queues the classes that events concern. A change of claims concerns the classes that are being deleted.
func (s *NodeClasses) enqueue(events []cluster.Event) {
	claims := false
	for _, event := range events {
		if event.Kind == cluster.ClassChanged {
			s.queue.Add(event.Name)
			continue
		}
		claims = true
	}
	if !claims {
		return
	}
	for _, class := range s.mirror.NodeClasses() {
		if !class.DeletionTimestamp.IsZero() {
			s.queue.Add(class.Name)
		}
	}
}

// work reconciles one class after the other: there are few, and the cloud calls for each are slow and rate-limited.
func (s *NodeClasses) work(ctx context.Context) {
	for {
		name, done := s.queue.Get()
		if done {
			return
		}
		again, err := s.reconcile(ctx, name)
		var failure *cloud.Error
		switch {
		case err == nil || ctx.Err() != nil:
			s.queue.Forget(name)
			if again > 0 {
				s.queue.AddAfter(name, again)
			}
		case apierrors.IsConflict(err):
			// The mirror is behind; perhaps the change it has missed has done everything already.
			s.queue.AddRateLimited(name)
		case errors.As(err, &failure) && failure.RetryAfter > 0:
			s.log.Info("EC2NodeClass has to wait", zap.String("nodeClass", name), zap.Duration("retryAfter", failure.RetryAfter), zap.Error(err))
			s.queue.AddAfter(name, failure.RetryAfter)
		default:
			s.log.Warn("EC2NodeClass will be looked at again", zap.String("nodeClass", name), zap.Error(err))
			s.queue.AddRateLimited(name)
		}
		s.queue.Done(name)
	}
}

// reconcile brings one class up to date and returns when to look again, zero for not before the next change.
func (s *NodeClasses) reconcile(ctx context.Context, name string) (time.Duration, error) {
	seen := s.mirror.NodeClass(name)
	if seen == nil {
		delete(s.resolved, name)
		return 0, nil
	}
	class := seen.DeepCopy()
	var again time.Duration
	var err error
	if class.DeletionTimestamp.IsZero() {
		again, err = s.keep(ctx, class)
	} else {
		again, err = s.release(ctx, class)
	}
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return again, err
}

// keep brings the finalizer, the hash and the status of a class up to date.
func (s *NodeClasses) keep(ctx context.Context, class *awsv1.EC2NodeClass) (time.Duration, error) {
	hash, err := class.Hash(s.caBundle)
	if err != nil {
		return 0, err
	}
	if err := nodeClassHash().renew(ctx, s.kube, s.claimsOf(class.Name), hash); err != nil {
		return 0, err
	}
	err = patch(ctx, s.kube, class, func() {
		controllerutil.AddFinalizer(class, awsv1.TerminationFinalizer)
		nodeClassHash().put(class, hash)
	})
	if err != nil {
		return 0, fmt.Errorf("put finalizer and hash on it: %w", err)
	}
	last := s.resolved[class.Name]
	if rest := last.until.Sub(s.now()); last.uid == class.UID && last.generation == class.Generation && rest > 0 {
		return rest, nil
	}
	if err := s.resolve(ctx, class); err != nil {
		return 0, err
	}
	s.resolved[class.Name] = resolution{uid: class.UID, generation: class.Generation, until: s.now().Add(resolveEvery)}
	return resolveEvery, nil
}

// resolve resolves a class in the cloud and writes its status if that has changed.
func (s *NodeClasses) resolve(ctx context.Context, class *awsv1.EC2NodeClass) error {
	status, failure := s.cloud.ResolveNodeClass(ctx, class)
	before := class.DeepCopy()
	if failure != nil {
		failure = fmt.Errorf("resolve: %w", failure)
		admit(class, failure)
	} else {
		adopt(class, status)
	}
	if equality.Semantic.DeepEqual(before.Status, class.Status) {
		return failure
	}
	if err := s.kube.Status().Patch(ctx, class, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Join(failure, fmt.Errorf("write status: %w", err))
	}
	s.log.Info("EC2NodeClass resolved", zap.String("nodeClass", class.Name), zap.Bool("ready", class.IsTrue(karpv1.ConditionTypeReady)),
		zap.Int("subnets", len(class.Status.Subnets)), zap.Int("amis", len(class.Status.AMIs)))
	return failure
}

// adopt applies a resolved status. Conditions keep the time of their last transition, and subnets whose order alone has
// changed, as it does with every launch, keep their order: neither is worth a write.
func adopt(class *awsv1.EC2NodeClass, status awsv1.EC2NodeClassStatus) {
	before := class.Status
	class.Status = status
	class.Status.Conditions = slices.DeleteFunc(slices.Clone(before.Conditions), func(c metav1.Condition) bool {
		return meta.FindStatusCondition(status.Conditions, c.Type) == nil
	})
	for _, condition := range status.Conditions {
		condition.ObservedGeneration = class.Generation
		meta.SetStatusCondition(&class.Status.Conditions, condition)
	}
	byID := func(a, b awsv1.Subnet) int { return cmp.Compare(a.ID, b.ID) }
	if slices.Equal(slices.SortedFunc(slices.Values(before.Subnets), byID), slices.SortedFunc(slices.Values(status.Subnets), byID)) {
		class.Status.Subnets = before.Subnets
	}
}

// admit writes into the status that a class could not be resolved. An earlier result is better than nothing, so that an
// outage of the cloud's API does not disable a class that worked: only a class that was never resolved in its present
// generation gets the error, once.
func admit(class *awsv1.EC2NodeClass, failure error) {
	if ready := class.Condition(karpv1.ConditionTypeReady); ready != nil && ready.ObservedGeneration == class.Generation {
		return
	}
	message := failure.Error()
	meta.SetStatusCondition(&class.Status.Conditions, metav1.Condition{
		Type: karpv1.ConditionTypeReady, Status: metav1.ConditionUnknown, ObservedGeneration: class.Generation,
		Reason: cmp.Or(cloud.ReasonOf(failure), reasonResolveFailed), Message: fitting(message),
	})
}

// release removes the finalizer of a deleted class once no claim uses it and what was made for it is gone.
func (s *NodeClasses) release(ctx context.Context, class *awsv1.EC2NodeClass) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(class, awsv1.TerminationFinalizer) {
		return 0, nil
	}
	users := s.claimsOf(class.Name)
	if len(users) == 0 {
		// Another replica may have created a claim that the mirror has not seen. Nothing that claim needs may be
		// removed.
		var claims karpv1.NodeClaimList
		if err := s.kube.List(ctx, &claims); err != nil {
			return 0, fmt.Errorf("list the claims that use it: %w", err)
		}
		for i := range claims.Items {
			if ownClass(&claims.Items[i]) == class.Name {
				users = append(users, &claims.Items[i])
			}
		}
	}
	if len(users) > 0 {
		s.log.Info("EC2NodeClass waits for its NodeClaims", zap.String("nodeClass", class.Name), zap.Int("claims", len(users)), zap.String("first", users[0].Name))
		if s.events != nil {
			s.events.Eventf(class, corev1.EventTypeNormal, "WaitingOnNodeClaimTermination", "Waiting on NodeClaim termination for %s", claimNames(users))
		}
		return releaseEvery, nil
	}
	if err := s.cloud.ReleaseNodeClass(ctx, class); err != nil {
		return 0, fmt.Errorf("release: %w", err)
	}
	if err := patch(ctx, s.kube, class, func() { controllerutil.RemoveFinalizer(class, awsv1.TerminationFinalizer) }); err != nil {
		return 0, fmt.Errorf("take the finalizer off: %w", err)
	}
	s.log.Info("EC2NodeClass released", zap.String("nodeClass", class.Name))
	return 0, nil
}

// claimNames names the first few claims.
func claimNames(claims []*karpv1.NodeClaim) string {
	const most = 5
	var names []string
	for _, claim := range claims[:min(most, len(claims))] {
		names = append(names, claim.Name)
	}
	slices.Sort(names)
	if more := len(claims) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// claimsOf returns the claims that use a class.
func (s *NodeClasses) claimsOf(class string) []*karpv1.NodeClaim {
	var users []*karpv1.NodeClaim
	for _, claim := range s.mirror.Claims() {
		if ownClass(claim) == class {
			users = append(users, claim)
		}
	}
	return users
}

// ownClass returns the name of a claim's EC2NodeClass, empty if its class is of another kind.
func ownClass(claim *karpv1.NodeClaim) string {
	if ref := claim.Spec.NodeClassRef; ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind {
		return ref.Name
	}
	return ""
}
