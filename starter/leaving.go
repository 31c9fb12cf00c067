package starter

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// leaving gathers claims that are being deleted while pods run on their nodes, until Provisioning is told. Their pods are
// planned for at once, and not when the drain has evicted them and the kube-scheduler has found no place: of the two
// minutes a spot instance has, a new one takes half to boot.
type leaving struct {
	mu sync.Mutex
	// version is the newest resource version of the claims gathered; empty while there are none.
	version string
	wake    chan struct{}
}

func newLeaving() *leaving { return &leaving{wake: make(chan struct{}, 1)} }

// add gathers the state of a claim.
func (l *leaving) add(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if order, err := resourceversion.CompareResourceVersion(version, l.version); l.version == "" || err == nil && order > 0 {
		l.version = version
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the newest version and begins anew.
func (l *leaving) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	version := l.version
	l.version = ""
	return version
}

// announceLeaving tells Provisioning of the claims that leave: the first at once, others a second later together.
func (s *Starter) announceLeaving(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.leaving.wake:
		}
		if version := s.leaving.take(); version != "" {
			err := s.signal(ctx, workflows.ProvisioningOptions(s.Cluster), workflows.ProvisioningType, workflows.ProvisioningInput{Cluster: s.Cluster},
				workflows.SignalPodsPending, workflows.PodsPending{Seen: time.Now(), SeenVersion: version})
			if err != nil && ctx.Err() == nil {
				s.Log.Warn("could not announce the pods of nodes that leave", zap.Error(err))
				s.leaving.add(version)
			}
		}
		if err := sleep(ctx, signalEvery); err != nil {
			return err
		}
	}
}

// leavesPods says whether a claim that is being deleted leaves pods without a place: those on its node that would need
// another, and those that were planned for it and have not come. The pods of a node that is being replaced have theirs,
// unless its instance goes before that is done.
func (s *Starter) leavesPods(claim *karpv1.NodeClaim, now time.Time) bool {
	if len(s.Mirror.Promised(claim.Name)) > 0 {
		return true
	}
	if node := s.Mirror.Node(claim.Status.NodeName); node != nil && node.Annotations[karpv1.ReplacementAnnotationKey] != "" &&
		disrupted(node) && !s.interruptions.has(claim.UID) {
		return false
	}
	for _, pod := range s.Mirror.PodsOnNode(claim.Status.NodeName) {
		if needsPlace(pod.Pod, now) {
			return true
		}
	}
	return false
}

// disrupted says whether a node carries the taint of one that is being replaced or drained.
func disrupted(node *corev1.Node) bool {
	taint := karpv1.DisruptedNoScheduleTaint()
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}

// needsPlace is the planner's own rule for the pods of a node that leaves.
func needsPlace(pod *plan.Pod, now time.Time) bool {
	return pod.Reschedulable() && !pod.Undisruptable(now)
}
