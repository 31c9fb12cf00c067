package starter

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// settle is how long changes are let come in before nodes are looked at again.
	settle = time.Second
	// restFor is how many times as long as a look has taken the next one waits at least, so that a large cluster in which
	// something changes all the time costs a fifth of one processor.
	restFor = 4
	// evaluateEvery and evaluateMost space the signals while the same is due and is not carried out: Disruption may know
	// what keeps it that the cluster does not show, such as a replacement that was just taken back.
	evaluateEvery, evaluateMost = 10 * time.Second, 5 * time.Minute
	// gatherFor is how long empty nodes that are due wait for another that comes due in a moment, and gatherMost how long
	// for all of those together: pods that go at the same time do not end at the same time, and one evaluation costs as
	// much for all their nodes as for one. Karpenter looks every ten seconds.
	gatherFor, gatherMost = 3 * time.Second, 6 * time.Second
	// idleLookEvery is how often nodes are looked at though nothing has changed in the cluster: what is for sale changes without
	// an event of it. An offering that had no capacity is tried again minutes later, and prices move. A look that finds
	// nothing costs Temporal nothing.
	idleLookEvery = time.Minute
	// freshEnough is how old the mirror may be for a node to be called unneeded.
	freshEnough = 30 * time.Second
)

// watchDisruption signals Disruption when there is something to take away. Whether there is is a pure question over the
// mirror, so it is asked here, after every change, at the moment the answer may change by itself, and now and then;
// Temporal hears of it only when the answer is yes.
func (s *Starter) watchDisruption(ctx context.Context) error {
	events := s.Mirror.Subscribe(cluster.NodeEmptied, cluster.NodeChanged, cluster.ClaimChanged, cluster.PoolChanged, cluster.PodsChanged,
		cluster.BuffersChanged, cluster.BudgetsChanged, cluster.ClassChanged, cluster.DaemonSetsChanged)
	defer events.Close()
	var last signalled
	for {
		began := time.Now()
		wait := s.disrupt(ctx, &last)
		rest := max(settle, restFor*time.Since(began))
		awaitEvents(ctx, events, wait)
		if err := sleep(ctx, rest); err != nil {
			return err
		}
		events.Take()
	}
}

// signalled is what Disruption was last told.
type signalled struct {
	at    time.Time
	nodes map[string]bool
	// again is how long the same is not said again; zero while nothing was said.
	again time.Duration
	// due is since when something is due that Disruption was not told; zero while there is nothing.
	due time.Time
}

// gather returns how long to wait for the next node that comes due, zero when Disruption is to be told of those that are.
// Only empty nodes wait: whatever else is due may be another thing in a moment.
func (s *signalled) gather(now time.Time, found plan.Disruption) time.Duration {
	if s.due.IsZero() {
		s.due = now
	}
	wait := found.NextLook.Sub(now)
	busy := slices.ContainsFunc(found.Commands, func(c plan.Command) bool { return c.Reason != karpv1.DisruptionReasonEmpty })
	if busy || found.NextLook.IsZero() || wait > gatherFor || now.Sub(s.due) >= gatherMost {
		s.due = time.Time{}
		return 0
	}
	return max(wait, settle)
}

// news reports whether a signal says anything new: a node nobody was told of, or the same ones after a while. It returns
// when to look again.
func (s *signalled) news(now time.Time, found plan.Disruption) (news bool, wait time.Duration) {
	due := map[string]bool{}
	for _, command := range found.Commands {
		for _, node := range command.Nodes {
			due[node] = true
			news = news || !s.nodes[node]
		}
	}
	switch rest := s.again - now.Sub(s.at); {
	case news:
		s.again = evaluateEvery
	case rest > 0:
		return false, rest
	default:
		s.again = min(2*s.again, evaluateMost)
	}
	s.at, s.nodes = now, due
	return true, s.again
}

// disrupt signals if something is due, and returns when to look again though nothing changes.
func (s *Starter) disrupt(ctx context.Context, last *signalled) time.Duration {
	if err := s.Mirror.Fresh(freshEnough); err != nil {
		return evaluateEvery
	}
	snapshot := s.Mirror.Snapshot()
	found := s.Disrupt(ctx, snapshot)
	tellAt := s.tell(snapshot, found)
	if len(found.Commands) == 0 {
		*last = signalled{}
		if s.verdicts.kindsChanged(found, time.Now()) {
			s.wakeDisruption(ctx)
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
	if wait := last.gather(time.Now(), found); wait > 0 {
		return wait
	}
	news, wait := last.news(time.Now(), found)
	if !news {
		return wait
	}
	if !s.wakeDisruption(ctx) {
		*last = signalled{}
		return evaluateEvery
	}
	return wait
}

// wakeDisruption has Disruption evaluate, and says whether that could be told.
func (s *Starter) wakeDisruption(ctx context.Context) bool {
	err := s.signal(ctx, workflows.DisruptionOptions(s.Cluster), workflows.DisruptionType, workflows.DisruptionInput{Cluster: s.Cluster, ClusterUID: s.ClusterUID}, workflows.SignalEvaluate, nil)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("could not signal Disruption", zap.Error(err))
	}
	return err == nil
}
