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

// leaving collects claims that are being deleted while pods run on their nodes, for the next signal to Provisioning.
// Their pods are planned for at once, not after the drain has evicted them and the kube-scheduler has found no place: a
// spot instance has two minutes, and a new one takes half of that to boot.
type leaving struct {
	mirror    Mirror
	workflows *signaller
	log       *zap.Logger
	// interrupted are the claims that were notified of an interruption; lost is how many pods of each claim that is
	// being deleted were announced as lost with their node.
	interrupted *dedup
	lost        dedup

	mu sync.Mutex
	// version is the newest resource version of the collected claims; empty while there are none.
	version string
	wake    chan struct{}
}

// add adds a claim by its resource version.
func (l *leaving) add(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = workflows.NewerVersion(l.version, version)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the newest version and clears it.
func (l *leaving) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	version := l.version
	l.version = ""
	return version
}

// announce signals Provisioning about the claims that leave: the first at once, others together a second later.
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

// leavesPods says whether the deletion of a claim leaves pods without a place: those on its node that need another
// place now, and those that were planned for it and have not arrived.
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

// losesMore says whether more pods now need another place because the drain does not evict them and they will be lost
// with the node. It also returns when to look again, zero for not before the next change.
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

// provided says whether the pods of a claim's node have their places, because the node is being replaced. That no
// longer holds once the claim was notified of an interruption.
func (l *leaving) provided(claim *karpv1.NodeClaim) bool {
	node := l.mirror.Node(claim.Status.NodeName)
	return node != nil && node.Annotations[karpv1.ReplacementAnnotationKey] != "" && disrupted(node) && !l.interrupted.knows(claim.UID)
}

// disrupted says whether a node carries the taint of nodes that are being replaced or drained.
func disrupted(node *corev1.Node) bool {
	taint := karpv1.DisruptedNoScheduleTaint()
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}
