package starter

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// settle is how long changes are let come in before nodes are looked at again.
	settle = time.Second
	// evaluateEvery spaces the signals while something is due but cannot be carried out.
	evaluateEvery = 10 * time.Second
	// freshEnough is how old the mirror may be for a node to be called unneeded.
	freshEnough = 30 * time.Second
)

// watchDisruption signals Disruption when a node has become unneeded. Whether one has is a pure question over the
// mirror, so it is asked here, after every change and at the moment the answer may change by itself; Temporal hears of
// it only when the answer is yes.
func (s *Starter) watchDisruption(ctx context.Context) error {
	events := s.Mirror.Subscribe(cluster.NodeEmptied, cluster.NodeChanged, cluster.ClaimChanged, cluster.PoolChanged, cluster.PodsChanged, cluster.BuffersChanged)
	defer events.Close()
	var last signalled
	for {
		wait := s.disrupt(ctx, &last)
		awaitEvents(ctx, events, wait)
		if err := sleep(ctx, settle); err != nil {
			return err
		}
		events.Take()
	}
}

// signalled is what Disruption was last told.
type signalled struct {
	at    time.Time
	nodes map[string]bool
}

// news reports whether a signal says anything new: a node nobody was told of, or the same ones after a while.
func (s *signalled) news(now time.Time, found plan.Disruption) bool {
	news := now.Sub(s.at) >= evaluateEvery
	due := map[string]bool{}
	for _, command := range found.Commands {
		for _, node := range command.Nodes {
			due[node] = true
			news = news || !s.nodes[node]
		}
	}
	if news {
		s.at, s.nodes = now, due
	}
	return news
}

// disrupt signals if something is due, and returns when to look again; zero means only after a change.
func (s *Starter) disrupt(ctx context.Context, last *signalled) time.Duration {
	if err := s.Mirror.Fresh(freshEnough); err != nil {
		return evaluateEvery
	}
	found := s.Disrupt(ctx, s.Mirror.Snapshot())
	if len(found.Commands) == 0 {
		if found.NextLook.IsZero() {
			return 0
		}
		return max(time.Until(found.NextLook), settle)
	}
	if last.news(time.Now(), found) {
		if err := s.signal(ctx, workflows.DisruptionOptions(s.Cluster), workflows.DisruptionType,
			workflows.DisruptionInput{Cluster: s.Cluster}, workflows.SignalEvaluate, nil); err != nil && ctx.Err() == nil {
			s.Log.Warn("could not signal Disruption", zap.Error(err))
		}
	}
	return evaluateEvery
}
