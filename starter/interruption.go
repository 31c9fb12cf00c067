package starter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/workflows"
)

// Interruptions is where the cloud announces that it takes instances away, or that they are of no more use.
type Interruptions interface {
	// Queue names the queue the notices come from; empty where there is none, and only Unhealthy may be asked.
	Queue() string
	// Receive waits for notices and returns some, or none after a while. One that is not deleted comes again.
	Receive(ctx context.Context) ([]cloud.Notice, error)
	// Delete says that notices have been handled.
	Delete(ctx context.Context, receipts []string) error
	// Unhealthy returns the instances that fail the cloud's checks, and those it means to work on.
	Unhealthy(ctx context.Context) ([]cloud.Interruption, error)
	// Shun leaves an offering alone for a while.
	Shun(key cloud.OfferingKey)
}

const (
	// receivers is how many of the starter's goroutines wait for notices. Each has a batch in hand at most, so this
	// bounds what is in memory, however long the queue.
	receivers = 4
	// handleFor is how long a batch may take: a notice that is not deleted within twenty seconds comes again.
	handleFor = 15 * time.Second
	// tellFor is how long Temporal may take to answer while a batch is handled; it takes milliseconds where all is well.
	tellFor = 3 * time.Second
	// receiveAgain and receiveMost bound the pause after a queue could not be read.
	receiveAgain, receiveMost = time.Second, time.Minute
	// signalAgain is the first pause before a signal that failed is sent again; each is twice the one before.
	signalAgain = 200 * time.Millisecond
	// unknownFor is how long after it was sent a notice about an unknown instance is kept: the instance may have been
	// launched a moment ago, and its claim may not name it yet.
	unknownFor = time.Minute
	// checkEvery is how often the cloud is asked for instances that fail its checks, and checkForbidden how often while it
	// does not allow the question.
	checkEvery, checkForbidden = time.Minute, time.Hour
)

// receiveNotices handles notices until ctx ends, one batch after the other.
func (s *Starter) receiveNotices(ctx context.Context) error {
	pause := receiveAgain
	for ctx.Err() == nil {
		notices, err := s.Interruptions.Receive(ctx)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			s.Log.Warn("could not read the interruption queue", zap.Error(err), zap.Duration("again", pause))
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, receiveMost)
			continue
		}
		pause = receiveAgain
		if len(notices) > 0 {
			s.handleNotices(ctx, notices)
		}
	}
	return ctx.Err()
}

// handleNotices handles a batch and deletes what was handled.
func (s *Starter) handleNotices(ctx context.Context, notices []cloud.Notice) {
	ctx, stop := context.WithTimeout(ctx, handleFor)
	defer stop()
	// What is taken back is remembered before anything is planned for the pods that run there.
	shunning, stopShunning := context.WithTimeout(ctx, tellFor)
	s.shun(shunning, s.takenBack(notices))
	stopShunning()
	var mu sync.Mutex
	var done []string
	var group errgroup.Group
	for i := range notices {
		group.Go(func() error {
			if s.handleNotice(ctx, &notices[i]) {
				mu.Lock()
				done = append(done, notices[i].Receipt)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // nobody fails; what could not be handled comes again
	if len(done) == 0 {
		return
	}
	if err := s.Interruptions.Delete(ctx, done); err != nil {
		s.Log.Warn("could not delete handled notices; they will come again", zap.Error(err))
		return
	}
	s.Metrics.deleted(len(done))
}

// handleNotice says whether a notice is done with.
func (s *Starter) handleNotice(ctx context.Context, notice *cloud.Notice) bool {
	s.Metrics.received(notice)
	if notice.Err != nil {
		s.Log.Warn("a message in the interruption queue cannot be understood and is deleted", zap.Error(notice.Err))
		return true
	}
	done := true
	for _, instance := range notice.Instances {
		done = s.interrupted(ctx, notice.Kind, instance, notice.At) && done
	}
	if done && notice.Kind != "" {
		s.Metrics.handled(time.Since(notice.At))
	}
	return done
}

// interrupted handles one instance and says whether that is done with.
func (s *Starter) interrupted(ctx context.Context, kind cloud.InterruptionKind, instance string, at time.Time) bool {
	claim := s.Mirror.ClaimByInstance(instance)
	if claim == nil {
		// Most instances of an account are somebody else's. One of which the cloud says beforehand that it will go may be
		// so young that its claim does not name it yet, or this view of the cluster too old to know it.
		return !announced(kind) || time.Since(at) > unknownFor && s.Mirror.Fresh(freshEnough) == nil
	}
	for pause := signalAgain; ; pause *= 2 {
		err := s.interrupt(ctx, claim, kind, at)
		if err == nil {
			return true
		}
		s.Log.Warn("could not tell a claim of its interruption", zap.String("claim", claim.Name), zap.String("instance", instance), zap.String("kind", string(kind)), zap.Error(err))
		if sleep(ctx, pause) != nil {
			return false
		}
	}
}

// announced says whether the cloud tells of something that is still to come.
func announced(kind cloud.InterruptionKind) bool {
	return kind == cloud.SpotInterruption || kind == cloud.ReservationInterruption || kind == cloud.ScheduledChange
}

// interrupt tells a claim's workflow that its instance goes, once, and people with Events. What the cloud announced is noted
// on the claim first and its Node closed, so that whoever plans knows which pods will be lost, and nothing is lost while
// Temporal is away: the claim is told from what was noted (interruptionNoted).
func (s *Starter) interrupt(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind, at time.Time) error {
	_, known := s.kind(kind)
	late := kind == cloud.InstanceTerminating && !s.interruptions.news(claim.UID, string(cloud.InstanceTerminated))
	if !known || late || !s.interruptions.first(claim.UID, string(kind)) {
		return nil
	}
	noted, err := s.note(ctx, claim, kind, at)
	if err != nil {
		s.interruptions.drop(claim.UID)
		return err
	}
	if !noted {
		return s.tellEnding(ctx, claim, kind)
	}
	telling, stop := context.WithTimeout(ctx, tellFor)
	defer stop()
	if err := s.tellEnding(telling, claim, kind); err != nil {
		s.Log.Warn("could not tell a claim of its interruption, which is noted on it", zap.String("claim", claim.Name), zap.String("kind", string(kind)), zap.Error(err))
		s.queue.AddRateLimited(cluster.Event{Kind: cluster.ClaimChanged, Name: claim.Name})
	}
	return nil
}

// interruptionNoted tells the workflow of a claim what was noted on it, where that has not been done: Temporal was away, or
// another replica held the Lease.
func (s *Starter) interruptionNoted(ctx context.Context, claim *karpv1.NodeClaim) error {
	kind := cloud.InterruptionKind(claim.Annotations[karpv1.InterruptionAnnotationKey])
	if _, known := s.kind(kind); !known || !s.interruptions.first(claim.UID, string(kind)) {
		return nil
	}
	return s.tellEnding(ctx, claim, kind)
}

// tellEnding tells a claim's workflow of an interruption where that matters to it, and people. Where it fails, it counts as
// not told.
func (s *Starter) tellEnding(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind) error {
	is, _ := s.kind(kind)
	if is.ending != "" && s.matters(claim, is) {
		ending := workflows.Ending{Reason: is.ending, Lost: is.lost, Deleting: !claim.DeletionTimestamp.IsZero()}
		if is.forced {
			ending.Deadline, ending.Forced = time.Now(), true
		}
		if err := s.end(ctx, claim, ending); err != nil {
			s.interruptions.drop(claim.UID)
			return err
		}
	}
	s.Log.Info("interrupted", zap.String("kind", string(kind)), zap.String("claim", claim.Name), zap.String("pool", claim.Labels[karpv1.NodePoolLabelKey]),
		zap.String("node", claim.Status.NodeName), zap.String("provider", claim.Status.ProviderID), zap.String("workflow", s.Cluster.NodeClaimID(claim.Name)))
	s.tellInterrupted(claim, is)
	return nil
}

// note writes onto a claim what the cloud has announced and when it ends the instance, unless that is known to be sooner,
// and closes its Node to new pods. It says whether the claim shows what was announced.
func (s *Starter) note(ctx context.Context, claim *karpv1.NodeClaim, kind cloud.InterruptionKind, at time.Time) (bool, error) {
	is, _ := s.kind(kind)
	serves := claim.DeletionTimestamp.IsZero()
	if !is.announces || !serves && !s.running(claim) {
		return false, nil
	}
	ends := at.Add(is.notice)
	if known := claim.EndsAt(); known.IsZero() || ends.Before(known) {
		noted := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&noted.ObjectMeta, karpv1.InstanceEndsAnnotationKey, ends.UTC().Format(time.RFC3339))
		metav1.SetMetaDataAnnotation(&noted.ObjectMeta, karpv1.InterruptionAnnotationKey, string(kind))
		if err := s.Kube.Patch(ctx, noted, kube.MergeFrom(claim)); kube.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("note on NodeClaim %s when its instance ends: %w", claim.Name, err)
		}
		claim = noted
	}
	if node := s.Mirror.Node(claim.Status.NodeName); node != nil && serves {
		if err := s.Close(ctx, node); err != nil {
			return false, err
		}
	}
	return serves && claim.Annotations[karpv1.InterruptionAnnotationKey] != "", nil
}

// matters says whether a claim's workflow has to hear of an interruption. One that ends already has heard enough, but for
// what makes waiting for pods pointless. That Tenon's own termination of an instance is announced is no news to anybody:
// by then there are no pods.
func (s *Starter) matters(claim *karpv1.NodeClaim, is interruption) bool {
	if claim.DeletionTimestamp.IsZero() {
		return true
	}
	return (is.lost || is.forced) && s.running(claim)
}

// running says whether a claim's node has pods that a drain waits for.
func (s *Starter) running(claim *karpv1.NodeClaim) bool {
	for _, pod := range s.Mirror.PodsOnNode(claim.Status.NodeName) {
		if !pod.Daemon && !pod.Static {
			return true
		}
	}
	return false
}

// checkInstances asks every minute which instances fail the cloud's checks.
func (s *Starter) checkInstances(ctx context.Context) error {
	for {
		wait := checkEvery
		unhealthy, err := s.Interruptions.Unhealthy(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case cloud.KindOf(err) == cloud.Forbidden:
			s.Log.Error("status checks of instances may not be read: impaired instances go unnoticed", zap.Error(err))
			wait = checkForbidden
		case err != nil:
			s.Log.Warn("could not read status checks of instances", zap.Error(err))
		}
		handling, stop := context.WithTimeout(ctx, handleFor)
		for _, found := range unhealthy {
			for _, instance := range found.Instances {
				s.unhealthy(handling, found.Kind, instance)
			}
		}
		stop()
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// unhealthy handles an instance that fails a check. It is counted when it is first seen to.
func (s *Starter) unhealthy(ctx context.Context, kind cloud.InterruptionKind, instance string) {
	if claim := s.Mirror.ClaimByInstance(instance); claim != nil && s.interruptions.news(claim.UID, string(kind)) && s.interrupted(ctx, kind, instance, time.Time{}) {
		s.Metrics.unhealthy(kind)
	}
}
