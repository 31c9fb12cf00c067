package starter

import (
	"context"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// provisioning signals Provisioning while there is something to plan: for pending pods (pods.go), for static pools that
// lack nodes (static.go), and for spare capacity that buffers ask for (buffers.go).
type provisioning struct {
	mirror    Mirror
	workflows *signaller
	log       *zap.Logger
}

// announceWhile signals Provisioning whenever due says so. It evaluates due on the mirror after every event, but not
// sooner than rest after it, and after the wait that due returns. The argument news says whether there has been news
// since the last signal: an event of a kind that may let a plan succeed which did not.
func (p *provisioning) announceWhile(ctx context.Context, events *cluster.Subscription, isNews func(cluster.EventKind) bool, rest time.Duration,
	due func(state *pending, snapshot *plan.Snapshot, news bool) (signal bool, wait time.Duration),
) error {
	state, news := pending{}, true
	for {
		snapshot := p.mirror.Snapshot()
		signal, wait := due(&state, snapshot, news)
		if signal {
			if err := p.announce(ctx, snapshot.Time); err != nil {
				state, wait = pending{signalled: time.Now()}, signalEvery
			}
		}
		if signal || wait == 0 {
			news = false
		}
		for _, event := range awaitEvents(ctx, events, wait) {
			news = news || isNews(event.Kind)
		}
		_ = smithytime.SleepWithContext(ctx, rest)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// announce signals Provisioning that there was something to plan at a moment. It logs the error that it returns.
func (p *provisioning) announce(ctx context.Context, seen time.Time) error {
	err := p.workflows.provision(ctx, workflows.PodsPending{Seen: seen})
	if err != nil && ctx.Err() == nil {
		p.log.Warn("could not signal that pods are pending", zap.Error(err))
	}
	return err
}
