package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// overlaysEvery is the interval between looks at NodeOverlays without a change in the cluster: the cloud's instance
	// types may have changed.
	overlaysEvery = 6 * time.Hour
	// overlaysAgain is the same when the instance types of some NodePool are not known.
	overlaysAgain = time.Minute
)

// NodeOverlayMirror is the part of the mirror that NodeOverlays reads.
type NodeOverlayMirror interface {
	WaitSynced(ctx context.Context) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	NodePools() []*karpv1.NodePool
	NodeClass(name string) cloud.NodeClass
	NodeOverlays() []*karpv1alpha1.NodeOverlay
}

// NodeOverlays keeps the status of every NodeOverlay up to date: whether it applies, and why not.
type NodeOverlays struct {
	kube   kube.Client
	mirror NodeOverlayMirror
	// types returns the instance types of a class.
	types     func(ctx context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error)
	labelKeys cloud.LabelKeys
	log       *zap.Logger
}

// NewNodeOverlays returns the NodeOverlays of a cluster; Run does the work. client must not read from a cache. types
// returns the instance types of a class.
func NewNodeOverlays(keys cloud.LabelKeys, client kube.Client, mirror NodeOverlayMirror, types func(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error), log *zap.Logger) *NodeOverlays {
	return &NodeOverlays{kube: client, mirror: mirror, types: types, labelKeys: keys, log: log}
}

// Run keeps the NodeOverlays until ctx ends.
func (s *NodeOverlays) Run(ctx context.Context) error {
	return loop{
		what: "NodeOverlay status", rest: statusEvery,
		kinds: []cluster.EventKind{cluster.OverlaysChanged, cluster.PoolEdited, cluster.ClassChanged},
		look:  s.pass,
	}.run(ctx, s.mirror, s.log)
}

// pass brings every NodeOverlay up to date, and returns when to look again.
func (s *NodeOverlays) pass(ctx context.Context) (time.Duration, error) {
	overlays := s.mirror.NodeOverlays()
	if len(overlays) == 0 {
		return 0, nil
	}
	pools, again := s.pools(ctx)
	_, problems := plan.NewOverlays(s.labelKeys, overlays, pools)
	var errs []error
	for _, overlay := range overlays {
		if err := s.keep(ctx, overlay, problems[overlay.Name]); err != nil {
			errs = append(errs, fmt.Errorf("NodeOverlay %s: %w", overlay.Name, err))
		}
	}
	return again, errors.Join(errs...)
}

// pools returns the NodePools whose instance types are known, and when to look again. The others do not hold up the
// overlays.
func (s *NodeOverlays) pools(ctx context.Context) (pools []plan.Pool, again time.Duration) {
	again = overlaysEvery
	for _, pool := range s.mirror.NodePools() {
		class := s.mirror.NodeClass(pool.Spec.Template.Spec.NodeClassRef.Name)
		if class == nil {
			continue // its creation is an event
		}
		types, err := s.types(ctx, class)
		if err != nil {
			again = overlaysAgain
			continue
		}
		pools = append(pools, plan.Pool{NodePool: pool, Types: types})
	}
	return pools, again
}

// keep writes the status of an overlay if it has changed. A conflict means that the mirror is behind; its next change
// brings the overlay back here.
func (s *NodeOverlays) keep(ctx context.Context, overlay *karpv1alpha1.NodeOverlay, problem plan.OverlayProblem) error {
	condition := metav1.Condition{Type: karpv1.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue}
	if problem.Reason != "" {
		condition.Status, condition.Reason = metav1.ConditionFalse, problem.Reason
		condition.Message = fitting(problem.Message)
	}
	after := overlay.DeepCopy()
	if !after.SetCondition(condition) {
		return nil
	}
	err := s.kube.Status().Patch(ctx, after, kube.MergeFromWithOptions(overlay, kube.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
