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

// tellFor is how long Temporal may take to answer while a batch of notices is handled; it takes milliseconds where all is
// well.
const tellFor = 3 * time.Second

// interruptions tells claims that the cloud takes their instances away, and people with them.
type interruptions struct {
	mirror    Mirror
	kube      kube.Client
	workflows *signaller
	events    record.EventRecorder
	// close keeps new pods off a Node.
	close func(ctx context.Context, node *corev1.Node) error
	// replacesAtRisk has nodes replaced of which the cloud says that it may take them back soon.
	replacesAtRisk bool
	// told are the interruptions that claims were told of.
	told *dedup
	// queue has claims looked at again that could not be told.
	queue queue
	log   *zap.Logger
}

// kind is what an announcement leads to here, and whether it leads to anything.
func (i *interruptions) kind(announced cloud.InterruptionKind) (interruption, bool) {
	return consequence(announced, i.replacesAtRisk)
}

// tell tells a claim's workflow that its instance goes, once, and people with Events. What the cloud announced is noted
// on the claim first and its Node closed, so that whoever plans knows which pods will be lost, and nothing is lost while
// Temporal is away: noted tells the claim from it.
func (i *interruptions) tell(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind, at time.Time) error {
	_, known := i.kind(kind)
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

// noted tells the workflow of a claim what was noted on it, where that has not been done: Temporal was away, or
// another replica held the Lease.
func (i *interruptions) noted(ctx context.Context, claim *karpv1.NodeClaim) error {
	kind := cloud.InterruptionKind(claim.Annotations[karpv1.InterruptionAnnotationKey])
	if _, known := i.kind(kind); !known || !i.told.markNew(claim.UID, string(kind)) {
		return nil
	}
	return i.tellEnding(ctx, claim, kind)
}

// tellEnding tells a claim's workflow of an interruption where that matters to it, and people. Where it fails, it counts as
// not told.
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

// note writes onto a claim what the cloud has announced and when it ends the instance, unless that is known to be sooner,
// and closes its Node to new pods. It says whether the claim shows what was announced.
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

// matters says whether a claim's workflow has to hear of an interruption. One that ends already has heard enough, but for
// what makes waiting for pods pointless. That Tenon's own termination of an instance is announced is no news to anybody:
// by then there are no pods.
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

// tellPeople tells people with kubectl, on the claim and on its Node. A claim that was on its way out before goes for
// another reason, and an instance Tenon itself terminates is not worth a word.
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
		tell("TerminatingOnInterruption", "The node is drained and its instance terminated: "+is.ending)
	}
}
