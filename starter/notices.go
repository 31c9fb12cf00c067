package starter

import (
	"context"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/cloud"
)

const (
	// receivers is the number of goroutines that wait for notices. Each holds at most one batch, which limits memory
	// however long the queue is.
	receivers = 4
	// handleFor is how long handling a batch may take: a notice that is not deleted within twenty seconds is delivered
	// again.
	handleFor = 15 * time.Second
	// receiveAgain and maxReceive limit the pause after the queue could not be read.
	receiveAgain, maxReceive = time.Second, time.Minute
	// signalAgain is the first pause before a failed signal is retried; each pause is twice the one before.
	signalAgain = 200 * time.Millisecond
	// unknownFor is how long after it was sent a notice about an unknown instance is kept: the instance may have been
	// launched a moment ago, and its claim may not name it yet.
	unknownFor = time.Minute
	// checkEvery is the interval at which the cloud is asked for instances that fail its checks, and checkForbidden the
	// interval while it denies permission.
	checkEvery, checkForbidden = time.Minute, time.Hour
)

// notices handles the cloud's notices about instances: it notifies the claims of these instances.
type notices struct {
	cloud         Interruptions
	mirror        Mirror
	interruptions *interruptions
	// offerings shuns those whose capacity the cloud takes back.
	offerings *offerings
	metrics   *InterruptionMetrics
	log       *zap.Logger
}

// receive handles notices until ctx ends, one batch after the other.
func (n *notices) receive(ctx context.Context) error {
	pause := receiveAgain
	for ctx.Err() == nil {
		notices, err := n.cloud.Receive(ctx)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			n.log.Warn("could not read the interruption queue", zap.Error(err), zap.Duration("again", pause))
			if err := smithytime.SleepWithContext(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, maxReceive)
			continue
		}
		pause = receiveAgain
		if len(notices) > 0 {
			n.handleAll(ctx, notices)
		}
	}
	return ctx.Err()
}

// handleAll handles a batch and deletes what was handled.
func (n *notices) handleAll(ctx context.Context, notices []cloud.Notice) {
	ctx, stop := context.WithTimeout(ctx, handleFor)
	defer stop()
	// Shun the offerings that are taken back before anything is planned for the pods that run there.
	shunning, stopShunning := context.WithTimeout(ctx, tellFor)
	n.offerings.shun(shunning, n.takenBack(notices))
	stopShunning()
	var mu sync.Mutex
	var done []string
	var group errgroup.Group
	for i := range notices {
		group.Go(func() error {
			if n.handle(ctx, &notices[i]) {
				mu.Lock()
				done = append(done, notices[i].Receipt)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // no function fails; notices that could not be handled are delivered again
	if len(done) == 0 {
		return
	}
	if err := n.cloud.Delete(ctx, done); err != nil {
		n.log.Warn("could not delete handled notices; they will come again", zap.Error(err))
		return
	}
	n.metrics.deleted(len(done))
}

// handle handles a notice and says whether it may be deleted.
func (n *notices) handle(ctx context.Context, notice *cloud.Notice) bool {
	n.metrics.received(notice)
	if notice.Err != nil {
		n.log.Warn("a message in the interruption queue cannot be understood and is deleted", zap.Error(notice.Err))
		return true
	}
	done := true
	for _, instance := range notice.Instances {
		done = n.interrupted(ctx, notice.Kind, instance, notice.At) && done
	}
	if done && notice.Kind != "" {
		n.metrics.handled(time.Since(notice.At))
	}
	return done
}

// interrupted handles one instance and says whether that is done.
func (n *notices) interrupted(ctx context.Context, kind cloud.InterruptionKind, instance string, at time.Time) bool {
	claim := n.mirror.ClaimByInstance(instance)
	if claim == nil {
		// Most instances of an account are not Tenon's. An instance whose end is announced may be so young that its
		// claim does not name it yet, or the mirror too old to know it.
		return !announced(kind) || time.Since(at) > unknownFor && n.mirror.Fresh(freshEnough) == nil
	}
	for pause := signalAgain; ; pause *= 2 {
		err := n.interruptions.tell(ctx, claim, kind, at)
		if err == nil {
			return true
		}
		n.log.Warn("could not tell a claim of its interruption", zap.String("claim", claim.Name), zap.String("instance", instance), zap.String("kind", string(kind)), zap.Error(err))
		if smithytime.SleepWithContext(ctx, pause) != nil {
			return false
		}
	}
}

// check asks the cloud every minute for the instances that fail its checks, and for the capacity blocks that end.
func (n *notices) check(ctx context.Context) error {
	for {
		wait := checkEvery
		unhealthy, err := n.cloud.Unhealthy(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case cloud.KindOf(err) == cloud.Forbidden:
			n.log.Error("no permission to read the status checks of instances: impaired instances go unnoticed", zap.Error(err))
			wait = checkForbidden
		case err != nil:
			n.log.Warn("could not read status checks of instances", zap.Error(err))
		}
		handling, stop := context.WithTimeout(ctx, handleFor)
		for _, found := range unhealthy {
			for _, instance := range found.Instances {
				n.unhealthy(handling, found.Kind, instance)
			}
		}
		n.endingBlocks(handling)
		stop()
		if err := smithytime.SleepWithContext(ctx, wait); err != nil {
			return err
		}
	}
}

// unhealthy handles an instance that fails a check, and counts it the first time.
func (n *notices) unhealthy(ctx context.Context, kind cloud.InterruptionKind, instance string) {
	if claim := n.mirror.ClaimByInstance(instance); claim != nil && n.interruptions.told.isNew(claim.UID, string(kind)) && n.interrupted(ctx, kind, instance, time.Time{}) {
		n.metrics.unhealthy(kind)
	}
}

// takenBack returns the offerings whose capacity the cloud takes back.
func (n *notices) takenBack(notices []cloud.Notice) []cloud.OfferingKey {
	var keys []cloud.OfferingKey
	for at := range notices {
		if is, _ := n.interruptions.kind(notices[at].Kind); !is.takesBack {
			continue
		}
		for _, instance := range notices[at].Instances {
			if claim := n.mirror.ClaimByInstance(instance); claim != nil {
				keys = append(keys, n.offerings.of(claim))
			}
		}
	}
	return keys
}
