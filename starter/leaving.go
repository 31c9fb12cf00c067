package starter

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// leaving gathers claims that are being deleted while pods run on their nodes, until Provisioning is told. Their pods are
// planned for at once, and not when the drain has evicted them and the kube-scheduler has found no place: of the two
// minutes a spot instance has, a new one takes half to boot.
type leaving struct {
	mirror    Mirror
	workflows *signaller
	log       *zap.Logger
	// interrupted are the claims that were told of an interruption, and lost is how many pods of claims that are being
	// deleted were announced as lost with their nodes.
	interrupted *dedup
	lost        dedup

	mu sync.Mutex
	// version is the newest resource version of the claims gathered; empty while there are none.
	version string
	wake    chan struct{}
}

// add gathers the state of a claim.
func (l *leaving) add(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = workflows.NewerVersion(l.version, version)
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

// announce tells Provisioning of the claims that leave: the first at once, others a second later together.
func (l *leaving) announce(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.wake:
		}
		if version := l.take(); version != "" {
			err := l.workflows.provision(ctx, workflows.PodsPending{Seen: time.Now(), SeenVersion: version})
			if err != nil && ctx.Err() == nil {
				l.log.Warn("could not announce the pods of nodes that leave", zap.Error(err))
				l.add(version)
			}
		}
		if err := smithytime.SleepWithContext(ctx, signalEvery); err != nil {
			return err
		}
	}
}

// leavesPods says whether a claim that is being deleted leaves pods without a place: those on its node that need another
// now, and those that were planned for it and have not come.
func (l *leaving) leavesPods(claim *karpv1.NodeClaim, now time.Time) bool {
	if len(l.mirror.Promised(claim.Name)) > 0 {
		return true
	}
	if l.provided(claim) {
		return false
	}
	for _, pod := range l.mirror.PodsOnNode(claim.Status.NodeName) {
		if at, moves := pod.MovesAt(claim.EndsAt(), now); moves && !at.After(now) {
			return true
		}
	}
	return false
}

// losesMore says whether pods have come to need another place that the drain does not evict, and that are lost with the
// node of a claim that is being deleted; and when to look again, zero for not before the next change.
func (l *leaving) losesMore(claim *karpv1.NodeClaim, now time.Time) (more bool, next time.Duration) {
	if claim.EndsAt().IsZero() || l.provided(claim) {
		return false, 0
	}
	lost := 0
	for _, pod := range l.mirror.PodsOnNode(claim.Status.NodeName) {
		at, moves := pod.MovesAt(claim.EndsAt(), now)
		switch wait := at.Sub(now); {
		case !moves || !pod.Undisruptable(now):
		case wait <= 0:
			lost++
		case next == 0 || wait < next:
			next = wait
		}
	}
	fact := strconv.Itoa(lost)
	if more = lost > 0 && l.lost.isNew(claim.UID, fact); more {
		l.lost.mark(claim.UID, fact)
	}
	return more, next
}

// provided says whether the pods of a claim's node have their places, because it is being replaced. That is not so any
// more where its instance goes before that is done.
func (l *leaving) provided(claim *karpv1.NodeClaim) bool {
	node := l.mirror.Node(claim.Status.NodeName)
	return node != nil && node.Annotations[karpv1.ReplacementAnnotationKey] != "" && disrupted(node) && !l.interrupted.knows(claim.UID)
}

// disrupted says whether a node carries the taint of one that is being replaced or drained.
func disrupted(node *corev1.Node) bool {
	taint := karpv1.DisruptedNoScheduleTaint()
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}
