package starter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
)

// resolveEvery is how often what a node class selects is looked up again. Karpenter asks for subnets once a minute; what
// may be older is kept by the provider itself.
const resolveEvery = time.Minute

// NodeClassMirror is what the node class controller sees of the cluster.
type NodeClassMirror interface {
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	NodeClass(name string) *awsv1.EC2NodeClass
	NodeClasses() []*awsv1.EC2NodeClass
	Claims() []*karpv1.NodeClaim
}

// NodeClassCloud is what the node class controller needs of a provider.
type NodeClassCloud interface {
	ResolveNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) (awsv1.EC2NodeClassStatus, error)
	ReleaseNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) error
}

// NodeClassStatus keeps the status of every EC2NodeClass true: what its selectors mean now, and whether nodes can be
// launched from it. A class that is deleted stays until no claim uses it and nothing made for it is left.
type NodeClassStatus struct {
	mirror NodeClassMirror
	kube   kube.Client
	cloud  NodeClassCloud
	log    *zap.Logger
	queue  workqueue.TypedRateLimitingInterface[string]
}

// NewNodeClassStatus returns a controller; Run does the work.
func NewNodeClassStatus(mirror NodeClassMirror, client kube.Client, cloud NodeClassCloud, log *zap.Logger) *NodeClassStatus {
	return &NodeClassStatus{mirror: mirror, kube: client, cloud: cloud, log: log,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))}
}

// Run works until ctx ends.
func (s *NodeClassStatus) Run(ctx context.Context) error {
	events := s.mirror.Subscribe(cluster.ClassChanged)
	defer events.Close()
	for _, class := range s.mirror.NodeClasses() {
		s.queue.Add(class.Name)
	}
	go s.work(ctx)
	defer s.queue.ShutDown()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events.C:
			for _, event := range events.Take() {
				s.queue.Add(event.Name)
			}
		}
	}
}

// work reconciles one class after the other: there are few, and each look at the cloud is slow and limited.
func (s *NodeClassStatus) work(ctx context.Context) {
	for {
		name, done := s.queue.Get()
		if done {
			return
		}
		again, err := s.reconcile(ctx, name)
		switch {
		case err != nil && ctx.Err() == nil:
			s.log.Warn("could not resolve EC2NodeClass", zap.String("class", name), zap.Error(err))
			s.queue.AddRateLimited(name)
		case again > 0:
			s.queue.Forget(name)
			s.queue.AddAfter(name, again)
		}
		s.queue.Done(name)
	}
}

// reconcile brings one class up to date and returns when to look again.
func (s *NodeClassStatus) reconcile(ctx context.Context, name string) (time.Duration, error) {
	seen := s.mirror.NodeClass(name)
	if seen == nil {
		return 0, nil
	}
	if !seen.DeletionTimestamp.IsZero() {
		return s.release(ctx, seen)
	}
	class := seen.DeepCopy()
	if err := s.annotate(ctx, class, seen); err != nil {
		return 0, err
	}
	status, err := s.cloud.ResolveNodeClass(ctx, class)
	if err != nil {
		return 0, fmt.Errorf("resolve: %w", err)
	}
	resolved := class.DeepCopy()
	adopt(resolved, status)
	if equality.Semantic.DeepEqual(class.Status, resolved.Status) {
		return resolveEvery, nil
	}
	if err := s.kube.Status().Patch(ctx, resolved, kube.MergeFrom(class)); err != nil {
		return 0, kube.IgnoreNotFound(fmt.Errorf("write status: %w", err))
	}
	s.log.Info("resolved EC2NodeClass", zap.String("class", name), zap.Bool("ready", resolved.IsTrue(karpv1.ConditionTypeReady)),
		zap.Int("subnets", len(status.Subnets)), zap.Int("amis", len(status.AMIs)))
	return resolveEvery, nil
}

// annotate puts the finalizer and the hash of its static fields on a class.
func (s *NodeClassStatus) annotate(ctx context.Context, class, seen *awsv1.EC2NodeClass) error {
	hash, err := class.Hash("")
	if err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	changed := controllerutil.AddFinalizer(class, awsv1.TerminationFinalizer)
	if class.Annotations[awsv1.AnnotationEC2NodeClassHash] != hash || class.Annotations[awsv1.AnnotationEC2NodeClassHashVersion] != awsv1.EC2NodeClassHashVersion {
		metav1.SetMetaDataAnnotation(&class.ObjectMeta, awsv1.AnnotationEC2NodeClassHash, hash)
		metav1.SetMetaDataAnnotation(&class.ObjectMeta, awsv1.AnnotationEC2NodeClassHashVersion, awsv1.EC2NodeClassHashVersion)
		changed = true
	}
	if !changed {
		return nil
	}
	if err := s.kube.Patch(ctx, class, kube.MergeFrom(seen)); err != nil {
		return fmt.Errorf("put finalizer and hash on it: %w", err)
	}
	return nil
}

// adopt takes a resolved status over. Conditions keep the time of their last transition, and subnets that only changed
// places, as they do with every launch, keep their order: neither is worth a write.
func adopt(class *awsv1.EC2NodeClass, status awsv1.EC2NodeClassStatus) {
	conditions := class.Status.Conditions
	for _, condition := range status.Conditions {
		condition.ObservedGeneration = class.Generation
		meta.SetStatusCondition(&conditions, condition)
	}
	before := class.Status.Subnets
	class.Status = status
	class.Status.Conditions = conditions
	byID := func(a, b awsv1.Subnet) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	}
	if slices.Equal(slices.SortedFunc(slices.Values(before), byID), slices.SortedFunc(slices.Values(status.Subnets), byID)) {
		class.Status.Subnets = before
	}
}

// release lets a deleted class go once no claim uses it and what was made for it is gone.
func (s *NodeClassStatus) release(ctx context.Context, seen *awsv1.EC2NodeClass) (time.Duration, error) {
	if !slices.Contains(seen.Finalizers, awsv1.TerminationFinalizer) {
		return 0, nil
	}
	for _, claim := range s.mirror.Claims() {
		if ref := claim.Spec.NodeClassRef; ref != nil && ref.Name == seen.Name {
			s.log.Info("EC2NodeClass waits for its NodeClaims", zap.String("class", seen.Name), zap.String("claim", claim.Name))
			return 5 * time.Second, nil
		}
	}
	if err := s.cloud.ReleaseNodeClass(ctx, seen); err != nil {
		return 0, fmt.Errorf("release: %w", err)
	}
	class := seen.DeepCopy()
	controllerutil.RemoveFinalizer(class, awsv1.TerminationFinalizer)
	if err := s.kube.Patch(ctx, class, kube.MergeFrom(seen)); err != nil {
		return 0, kube.IgnoreNotFound(fmt.Errorf("take the finalizer off: %w", err))
	}
	return 0, nil
}
