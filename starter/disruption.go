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
	// restFor is the minimum pause after a look, in multiples of the time that the look took, so that a large cluster
	// in which something changes all the time costs a fifth of one processor.
	restFor = 4
	// idleLookEvery is how often nodes are looked at without a change in the cluster: offerings change without an
	// event. One that had no capacity is tried again minutes later, and prices move. A look that finds nothing costs
	// nothing in Temporal.
	idleLookEvery = time.Minute
)

// disruption signals Disruption when nodes may be disrupted.
type disruption struct {
	mirror    Mirror
	workflows *signaller
	// find finds the nodes that may be disrupted now.
	find func(ctx context.Context, snapshot *plan.Snapshot) plan.Disruption
	// people records the Events that say why nodes are kept.
	people *verdictEvents
	// kinds are the kinds of reason that Disruption has written down; last is the last signal to it.
	kinds kinds
	last  signalled
	log   *zap.Logger
}

// watch looks at nodes until ctx ends. Whether any may be disrupted follows from the mirror alone, so it is evaluated
// here: after every change, at the moment the answer may change by itself, and regularly. Temporal gets a signal only
// when the answer is yes.
func (d *disruption) watch(ctx context.Context) error {
	events := d.mirror.Subscribe(cluster.NodeEmptied, cluster.NodeChanged, cluster.ClaimChanged, cluster.PoolChanged, cluster.PodsChanged,
		cluster.BuffersChanged, cluster.BudgetsChanged, cluster.ClassChanged, cluster.DaemonSetsChanged, cluster.PausesChanged)
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

// look signals if something is due, and returns when to look again without a change.
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

// wake signals Disruption to evaluate, and says whether that succeeded.
func (d *disruption) wake(ctx context.Context) bool {
	err := d.workflows.evaluate(ctx)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("could not signal Disruption", zap.Error(err))
	}
	return err == nil
}
