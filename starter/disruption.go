package starter

import (
	"context"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// restFor is how many times as long as a look has taken the next one waits at least, so that a large cluster in which
	// something changes all the time costs a fifth of one processor.
	restFor = 4
	// idleLookEvery is how often nodes are looked at though nothing has changed in the cluster: what is for sale changes without
	// an event of it. An offering that had no capacity is tried again minutes later, and prices move. A look that finds
	// nothing costs Temporal nothing.
	idleLookEvery = time.Minute
)

// disruption signals Disruption when there is something to take away.
type disruption struct {
	mirror    Mirror
	workflows *signaller
	// find says what may be taken away now.
	find func(ctx context.Context, snapshot *plan.Snapshot) plan.Disruption
	// people are told why nodes stay.
	people *verdictEvents
	// kinds are the kinds of reason that Disruption has written down, last what it was told.
	kinds kinds
	last  signalled
	log   *zap.Logger
}

// watch looks at nodes until ctx ends. Whether any may be taken away is a pure question over the mirror, so it is asked
// here, after every change, at the moment the answer may change by itself, and now and then; Temporal hears of it only when
// the answer is yes.
func (d *disruption) watch(ctx context.Context) error {
	events := d.mirror.Subscribe(cluster.NodeEmptied, cluster.NodeChanged, cluster.ClaimChanged, cluster.PoolChanged, cluster.PodsChanged,
		cluster.BuffersChanged, cluster.BudgetsChanged, cluster.ClassChanged, cluster.DaemonSetsChanged)
	defer events.Close()
	for {
		began := time.Now()
		wait := d.look(ctx)
		rest := max(settle, restFor*time.Since(began))
		awaitEvents(ctx, events, wait)
		if err := smithytime.SleepWithContext(ctx, rest); err != nil {
			return err
		}
		events.Take()
	}
}

// look signals if something is due, and returns when to look again though nothing changes.
func (d *disruption) look(ctx context.Context) time.Duration {
	if err := d.mirror.Fresh(freshEnough); err != nil {
		return staleAgain
	}
	snapshot := d.mirror.Snapshot()
	found := d.find(ctx, snapshot)
	tellAt := d.people.tell(snapshot, found)
	if len(found.Commands) == 0 {
		d.last = signalled{}
		if d.kinds.changed(found, time.Now()) {
			d.wake(ctx)
		}
		next := found.NextLook
		if !tellAt.IsZero() && (next.IsZero() || tellAt.Before(next)) {
			next = tellAt
		}
		if next.IsZero() {
			return idleLookEvery
		}
		return min(max(time.Until(next), settle), idleLookEvery)
	}
	if wait := d.last.gather(time.Now(), found); wait > 0 {
		return wait
	}
	news, wait := d.last.news(time.Now(), found)
	if !news {
		return wait
	}
	if !d.wake(ctx) {
		d.last = signalled{}
		return evaluateEvery
	}
	return wait
}

// wake has Disruption evaluate, and says whether that could be told.
func (d *disruption) wake(ctx context.Context) bool {
	err := d.workflows.evaluate(ctx)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("could not signal Disruption", zap.Error(err))
	}
	return err == nil
}
