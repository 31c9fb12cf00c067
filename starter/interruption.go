package starter

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// tellFor is how long Temporal may take to answer while a batch of notices is handled; normally it takes milliseconds.
const tellFor = 3 * time.Second

// interruptions notifies the workflows of claims whose instances the cloud takes away, and records Events for people.
type interruptions struct {
	mirror    Mirror
	kube      kube.Client
	workflows *signaller
	events    record.EventRecorder
	// close keeps new pods off a Node.
	close func(ctx context.Context, node *corev1.Node) error
	// replacesAtRisk enables the replacement of nodes that the cloud says it may soon take back.
	replacesAtRisk bool
	// told are the interruptions that were already signalled to claims.
	told *dedup
	// queue receives the claims that could not be notified.
	queue queue
	log   *zap.Logger
}

// kind returns what an announcement leads to here, and whether it leads to anything.
func (i *interruptions) kind(announced cloud.InterruptionKind) (interruption, bool) {
	return consequence(announced, i.replacesAtRisk)
}

// tell notifies a claim's workflow once that its instance goes away, and people with Events. It first notes the
// announcement on the claim and closes its Node, so that planners know which pods will be lost, and the announcement
// survives an outage of Temporal: noted then signals it. While interruption is paused, it only holds the announcement.
func (i *interruptions) tell(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind, at time.Time) error {
	_, known := i.kind(kind)
	if stop := i.stopped(claim); known && stop != nil {
		return i.hold(ctx, claim, kind, at, stop)
	}
	late := kind == cloud.InstanceTerminating && !i.told.isNew(claim.UID, string(cloud.InstanceTerminated))
	if !known || late || !i.told.markNew(claim.UID, string(kind)) {
		return nil
	}
	noted, err := i.note(ctx, claim, kind, at)
	if err != nil {
		i.told.forget(claim.UID)
		return err
	}
	if !noted {
		return i.tellEnding(ctx, claim, kind)
	}
	telling, stop := context.WithTimeout(ctx, tellFor)
	defer stop()
	if err := i.tellEnding(telling, claim, kind); err != nil {
		i.log.Warn("could not tell a claim of its interruption, which is noted on it", zap.String("claim", claim.Name), zap.String("kind", string(kind)), zap.Error(err))
		i.queue.AddRateLimited(claimEvent(claim.Name))
	}
	return nil
}

// noted signals an interruption noted on a claim to its workflow, if that has not been done because Temporal was
// unavailable or another replica held the Lease.
func (i *interruptions) noted(ctx context.Context, claim *karpv1.NodeClaim) error {
	kind := cloud.InterruptionKind(claim.Annotations[karpv1.InterruptionAnnotationKey])
	if i.stopped(claim) != nil {
		return nil
	}
	if _, known := i.kind(kind); !known || !i.told.markNew(claim.UID, string(kind)) {
		return nil
	}
	return i.tellEnding(ctx, claim, kind)
}

// stopped says what stops reactions to interruptions of a claim; nil if nothing does.
func (i *interruptions) stopped(claim *karpv1.NodeClaim) *karpv1.Stop {
	return closed(i.mirror, karpv1.PauseInterruption, karpv1.WindowInterrupted, claim.Labels[karpv1.NodePoolLabelKey], time.Now())
}

// hold writes an announcement onto a claim, where it waits for the end of a pause: a queue keeps messages for minutes only.
// Those of an instance that is being removed anyway are not held.
func (i *interruptions) hold(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind, at time.Time, stop *karpv1.Stop) error {
	if at.IsZero() {
		at = time.Now()
	}
	before := claim.Annotations[karpv1.HeldInterruptionsAnnotationKey]
	text := holding(before, string(kind), at)
	if text == before || !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	held := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&held.ObjectMeta, karpv1.HeldInterruptionsAnnotationKey, text)
	if err := i.kube.Patch(ctx, held, kube.MergeFromWithOptions(claim, kube.MergeFromWithOptimisticLock{})); kube.IgnoreNotFound(err) != nil {
		return fmt.Errorf("hold an interruption on NodeClaim %s: %w", claim.Name, err)
	}
	is, _ := i.kind(kind)
	i.log.Warn("an interruption is held", zap.String("kind", string(kind)), zap.String("claim", claim.Name), zap.Stringer("why", stop))
	if i.events != nil {
		i.events.Event(held, corev1.EventTypeWarning, is.event, is.message+"; nothing is done about it: "+stop.String())
	}
	return nil
}

// release tells the interruptions that a pause has held on a claim, once it is over, and removes them from the claim.
func (i *interruptions) release(ctx context.Context, claim *karpv1.NodeClaim) error {
	text := claim.Annotations[karpv1.HeldInterruptionsAnnotationKey]
	if text == "" || i.stopped(claim) != nil {
		return nil
	}
	held, err := readHeld(text)
	if err != nil {
		i.log.Warn("held interruptions cannot be read", zap.String("claim", claim.Name), zap.Error(err))
	}
	for _, h := range held {
		if err := i.tell(ctx, claim, cloud.InterruptionKind(h.kind), h.at); err != nil {
			return err
		}
	}
	released := claim.DeepCopy()
	delete(released.Annotations, karpv1.HeldInterruptionsAnnotationKey)
	if err := i.kube.Patch(ctx, released, kube.MergeFrom(claim)); kube.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release the interruptions of NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// tellEnding notifies people of an interruption, and the claim's workflow where that matters to it. If it fails, the
// interruption counts as not signalled.
func (i *interruptions) tellEnding(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind) error {
	is, _ := i.kind(kind)
	if is.ending != "" && i.matters(claim, is) {
		ending := workflows.Ending{Reason: is.ending, Lost: is.lost, Deleting: !claim.DeletionTimestamp.IsZero()}
		if is.forced {
			ending.Deadline, ending.Forced = time.Now(), true
		}
		if err := i.workflows.end(ctx, claim, ending); err != nil {
			i.told.forget(claim.UID)
			return err
		}
	}
	i.log.Info("interrupted", zap.String("kind", string(kind)), zap.String("claim", claim.Name), zap.String("pool", claim.Labels[karpv1.NodePoolLabelKey]),
		zap.String("node", claim.Status.NodeName), zap.String("provider", claim.Status.ProviderID), zap.String("workflow", i.workflows.cluster.NodeClaimID(claim.Name)))
	i.tellPeople(claim, is)
	return nil
}

// note writes onto a claim what the cloud has announced and when the instance ends, unless a sooner end is known, and
// closes its Node to new pods. It returns whether the claim shows the announcement.
func (i *interruptions) note(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind, at time.Time) (bool, error) {
	is, _ := i.kind(kind)
	serves := claim.DeletionTimestamp.IsZero()
	if !is.announces || !serves && !i.running(claim) {
		return false, nil
	}
	ends := at.Add(is.notice)
	if known := claim.EndsAt(); known.IsZero() || ends.Before(known) {
		noted := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&noted.ObjectMeta, karpv1.InstanceEndsAnnotationKey, ends.UTC().Format(time.RFC3339))
		metav1.SetMetaDataAnnotation(&noted.ObjectMeta, karpv1.InterruptionAnnotationKey, string(kind))
		if err := i.kube.Patch(ctx, noted, kube.MergeFrom(claim)); kube.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("note on NodeClaim %s when its instance ends: %w", claim.Name, err)
		}
		claim = noted
	}
	if node := i.mirror.Node(claim.Status.NodeName); node != nil && serves {
		if err := i.close(ctx, node); err != nil {
			return false, err
		}
	}
	return serves && claim.Annotations[karpv1.InterruptionAnnotationKey] != "", nil
}

// matters says whether a claim's workflow needs to know of an interruption. A workflow that is already ending its node
// needs only interruptions that make waiting for pods pointless. Announcements of Tenon's own terminations do not
// matter: by then there are no pods.
func (i *interruptions) matters(claim *karpv1.NodeClaim, is interruption) bool {
	if claim.DeletionTimestamp.IsZero() {
		return true
	}
	return (is.lost || is.forced) && i.running(claim)
}

// running says whether a claim's node has pods that a drain waits for.
func (i *interruptions) running(claim *karpv1.NodeClaim) bool {
	for _, pod := range i.mirror.PodsOnNode(claim.Status.NodeName) {
		if !pod.Daemon && !pod.Static {
			return true
		}
	}
	return false
}

// tellPeople records Events on the claim and on its Node. A claim that was already ending gets no
// TerminatingOnInterruption, since it ends for another reason, and no Event about a termination that may be Tenon's
// own.
func (i *interruptions) tellPeople(claim *karpv1.NodeClaim, is interruption) {
	ending := !claim.DeletionTimestamp.IsZero()
	if i.events == nil || ending && !is.takesBack && !is.forced {
		return
	}
	node := i.mirror.Node(claim.Status.NodeName)
	tell := func(reason, message string) {
		i.events.Event(claim, corev1.EventTypeWarning, reason, message)
		if node != nil {
			i.events.Event(node, corev1.EventTypeWarning, reason, message)
		}
	}
	tell(is.event, is.message)
	if is.ending != "" && !ending {
		tell(eventTerminatingOnInterruption, "The node is drained and its instance terminated: "+is.ending)
	}
}
