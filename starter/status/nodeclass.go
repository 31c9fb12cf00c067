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
	// eventWaitingOnClaims says that a deleted node class waits until the NodeClaims that use it are gone.
	eventWaitingOnClaims = "WaitingOnNodeClaimTermination"
	// reasonResolveFailed says that the class could not be resolved; the message has the error.
	reasonResolveFailed = "ResolveFailed"
)

// NodeClassMirror is the part of the mirror that NodeClasses reads.
type NodeClassMirror interface {
	WaitSynced(ctx context.Context) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	NodeClass(name string) cloud.NodeClass
	NodeClasses() []cloud.NodeClass
	Claims() []*karpv1.NodeClaim
}

// NodeClassCloud is the part of a provider that NodeClasses calls.
type NodeClassCloud interface {
	ResolveNodeClass(ctx context.Context, class cloud.NodeClass) (cloud.NodeClass, error)
	ReleaseNodeClass(ctx context.Context, class cloud.NodeClass) error
}

// NodeClasses keeps the status of every node class up to date: what its selectors match now, and whether nodes can be
// launched from it. A deleted class is kept until no claim uses it and nothing made for it is left.
type NodeClasses struct {
	kind   cloud.Kind
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
func NewNodeClasses(kind cloud.Kind, mirror NodeClassMirror, client kube.Client, cloud NodeClassCloud, caBundle string, events record.EventRecorder, log *zap.Logger) *NodeClasses {
	return &NodeClasses{
		kind: kind, mirror: mirror, kube: client, cloud: cloud, caBundle: caBundle, events: events, log: log, now: time.Now,
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

// Run keeps the node classes until ctx ends. Only the holder of the Lease may call it, and at most once.
func (s *NodeClasses) Run(ctx context.Context) error {
	// Claims that have not been listed yet would look as if they were gone, and what they need would be removed.
	if err := s.mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("node class status: wait for the mirror: %w", err)
	}
	events := s.mirror.Subscribe(cluster.ClassChanged, cluster.ClaimChanged)
	defer events.Close()
	for _, class := range s.mirror.NodeClasses() {
		s.queue.Add(class.GetName())
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
		if class.GetDeletionTimestamp() != nil {
			s.queue.Add(class.GetName())
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
			s.log.Info("node class has to wait", zap.String("nodeClass", name), zap.Duration("retryAfter", failure.RetryAfter), zap.Error(err))
			s.queue.AddAfter(name, failure.RetryAfter)
		default:
			s.log.Warn("node class will be looked at again", zap.String("nodeClass", name), zap.Error(err))
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
	class := copied(seen)
	var again time.Duration
	var err error
	if class.GetDeletionTimestamp() == nil {
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
func (s *NodeClasses) keep(ctx context.Context, class cloud.NodeClass) (time.Duration, error) {
	hash, err := class.Hash(s.caBundle)
	if err != nil {
		return 0, err
	}
	if err := nodeClassHash(s.kind).renew(ctx, s.kube, s.claimsOf(class.GetName()), hash); err != nil {
		return 0, err
	}
	err = patch(ctx, s.kube, class, func() {
		controllerutil.AddFinalizer(class, s.kind.Finalizer)
		nodeClassHash(s.kind).put(class, hash)
	})
	if err != nil {
		return 0, fmt.Errorf("put finalizer and hash on it: %w", err)
	}
	last := s.resolved[class.GetName()]
	if rest := last.until.Sub(s.now()); last.uid == class.GetUID() && last.generation == class.GetGeneration() && rest > 0 {
		return rest, nil
	}
	if err := s.resolve(ctx, class); err != nil {
		return 0, err
	}
	s.resolved[class.GetName()] = resolution{uid: class.GetUID(), generation: class.GetGeneration(), until: s.now().Add(resolveEvery)}
	return resolveEvery, nil
}

// resolve resolves a class in the cloud and writes its status if that has changed.
func (s *NodeClasses) resolve(ctx context.Context, class cloud.NodeClass) error {
	after, failure := s.cloud.ResolveNodeClass(ctx, class)
	before := copied(class)
	if failure != nil {
		failure = fmt.Errorf("resolve: %w", failure)
		admit(class, failure)
		after = class
	} else {
		adopt(after, class)
	}
	if equality.Semantic.DeepEqual(before, after) {
		return failure
	}
	if err := s.kube.Status().Patch(ctx, after, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Join(failure, fmt.Errorf("write status: %w", err))
	}
	s.log.Info("node class resolved", zap.String("nodeClass", after.GetName()), zap.Bool("ready", after.IsTrue(karpv1.ConditionTypeReady)))
	return failure
}

// adopt completes the conditions of a resolved class: they keep the time of their last transition in the class before it was
// resolved, which alone is not worth a write.
func adopt(resolved, class cloud.NodeClass) {
	found := *resolved.StatusConditions()
	conditions := slices.DeleteFunc(slices.Clone(*class.StatusConditions()), func(c metav1.Condition) bool {
		return meta.FindStatusCondition(found, c.Type) == nil
	})
	for _, condition := range found {
		condition.ObservedGeneration = class.GetGeneration()
		meta.SetStatusCondition(&conditions, condition)
	}
	*resolved.StatusConditions() = conditions
}

// copied returns a copy of a node class.
func copied(class cloud.NodeClass) cloud.NodeClass { return class.DeepCopyObject().(cloud.NodeClass) }

// admit writes into the status that a class could not be resolved. An earlier result is better than nothing, so that an
// outage of the cloud's API does not disable a class that worked: only a class that was never resolved in its present
// generation gets the error, once.
func admit(class cloud.NodeClass, failure error) {
	if ready := class.Condition(karpv1.ConditionTypeReady); ready != nil && ready.ObservedGeneration == class.GetGeneration() {
		return
	}
	message := failure.Error()
	meta.SetStatusCondition(class.StatusConditions(), metav1.Condition{
		Type: karpv1.ConditionTypeReady, Status: metav1.ConditionUnknown, ObservedGeneration: class.GetGeneration(),
		Reason: cmp.Or(cloud.ReasonOf(failure), reasonResolveFailed), Message: fitting(message),
	})
}

// release removes the finalizer of a deleted class once no claim uses it and what was made for it is gone.
func (s *NodeClasses) release(ctx context.Context, class cloud.NodeClass) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(class, s.kind.Finalizer) {
		return 0, nil
	}
	users := s.claimsOf(class.GetName())
	if len(users) == 0 {
		// Another replica may have created a claim that the mirror has not seen. Nothing that claim needs may be
		// removed.
		var claims karpv1.NodeClaimList
		if err := s.kube.List(ctx, &claims); err != nil {
			return 0, fmt.Errorf("list the claims that use it: %w", err)
		}
		for i := range claims.Items {
			if ownClass(s.kind, &claims.Items[i]) == class.GetName() {
				users = append(users, &claims.Items[i])
			}
		}
	}
	if len(users) > 0 {
		s.log.Info("node class waits for its NodeClaims", zap.String("nodeClass", class.GetName()), zap.Int("claims", len(users)), zap.String("first", users[0].Name))
		if s.events != nil {
			s.events.Eventf(class, corev1.EventTypeNormal, eventWaitingOnClaims, "Waiting on NodeClaim termination for %s", claimNames(users))
		}
		return releaseEvery, nil
	}
	if err := s.cloud.ReleaseNodeClass(ctx, class); err != nil {
		return 0, fmt.Errorf("release: %w", err)
	}
	if err := patch(ctx, s.kube, class, func() { controllerutil.RemoveFinalizer(class, s.kind.Finalizer) }); err != nil {
		return 0, fmt.Errorf("take the finalizer off: %w", err)
	}
	s.log.Info("node class released", zap.String("nodeClass", class.GetName()))
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
		if ownClass(s.kind, claim) == class {
			users = append(users, claim)
		}
	}
	return users
}

// ownClass returns the name of a claim's node class, empty if its class is of another kind.
func ownClass(kind cloud.Kind, claim *karpv1.NodeClaim) string {
	if ref := claim.Spec.NodeClassRef; ref != nil && ref.Group == kind.Group && ref.Kind == kind.Kind {
		return ref.Name
	}
	return ""
}
