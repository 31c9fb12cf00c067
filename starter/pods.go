package starter

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// signalEvery spaces the signals of a burst: the plan waits for the burst's end anyway.
	signalEvery = time.Second
	// retryFirst is how soon pods that no plan could place are planned again: after Karpenter's ten seconds. It is done ever
	// less often, so that a pod that fits nowhere costs little: every minute (retryLong), and where nothing was news for
	// longer than ten times that after a tenth (1/retryShare) of the time it was not, at most every five minutes
	// (retryMost). Capacity that is back is noticed within that time.
	retryFirst = 10 * time.Second
	retryLong  = time.Minute
	retryMost  = 5 * time.Minute
	retryShare = 10
)

// pending decides when Provisioning hears of pending pods. Its methods are pure but for the fields.
type pending struct {
	announced map[types.UID]bool
	signalled time.Time
	retry     time.Duration
	// news is when there was news last.
	news time.Time
}

// due says whether to signal now, and otherwise when to look again; zero means only after a change. Pods that a plan has
// promised to a machine which is still starting are not waited for; once it has started, the kube-scheduler gets a while
// to bind them. Pods it means to preempt for are looked at again after a while. News, pools, classes or volumes having
// changed, counts like a new pod. Virtual pods are for watchBuffers.
func (p *pending) due(snapshot *plan.Snapshot, news bool) (signal bool, wait time.Duration) {
	coming := promises(snapshot)
	waiting := map[types.UID]bool{}
	pods, others := snapshot.WaitingForNode()
	for _, pod := range pods {
		if !pod.Virtual && !coming[pod.UID] {
			waiting[pod.UID] = true
			news = news || !p.announced[pod.UID]
		}
	}
	signal, wait = p.decide(snapshot.Time, waiting, news)
	if len(waiting) == 0 && (len(coming) > 0 || others) {
		wait = retryFirst
	}
	return signal, wait
}

// decide is due for what waits at a moment: pods, or what stands for them, by UID.
func (p *pending) decide(now time.Time, waiting map[types.UID]bool, news bool) (signal bool, wait time.Duration) {
	switch {
	case len(waiting) == 0:
		p.announced, p.retry = nil, 0
		return false, 0
	case !news && p.retry == 0:
		p.retry, p.signalled, p.news = retryFirst, now, now
		return false, retryFirst
	}
	pause := p.retry
	if news {
		pause = signalEvery
	}
	if rest := pause - now.Sub(p.signalled); rest > 0 {
		return false, rest
	}
	p.retry = min(2*p.retry, max(retryLong, min(now.Sub(p.news)/retryShare, retryMost)))
	if news {
		p.retry, p.news = retryFirst, now
	}
	p.announced, p.signalled = waiting, now
	return true, p.retry
}

// promises returns the pods that were planned for machines still starting or just started. A machine that is taken away
// again before it has started keeps no promise.
func promises(snapshot *plan.Snapshot) map[types.UID]bool {
	coming := map[types.UID]bool{}
	for _, node := range snapshot.Nodes {
		if node.Deleting {
			continue
		}
		starting := !node.Initialized || snapshot.Time.Sub(node.InitializedAt) < retryFirst
		for _, uid := range node.Promised {
			coming[uid] = coming[uid] || starting
		}
	}
	return coming
}

// watchPods signals Provisioning while pods are pending.
func (s *Starter) watchPods(ctx context.Context) error {
	events := s.Mirror.Subscribe(cluster.PodsPending, cluster.PoolEdited, cluster.ClassChanged, cluster.StorageChanged)
	defer events.Close()
	isNews := func(kind cluster.EventKind) bool { return kind != cluster.PodsPending }
	return s.announceWhile(ctx, events, isNews, 0, (*pending).due)
}

// announceWhile signals Provisioning whenever that is due. Due is a question over the mirror, asked again after every
// event, not sooner than rest after it, and after the wait it returns. It is told whether there has been news since the
// last signal: an event of a kind that may make a plan succeed which did not.
func (s *Starter) announceWhile(ctx context.Context, events *cluster.Subscription, isNews func(cluster.EventKind) bool, rest time.Duration,
	due func(state *pending, snapshot *plan.Snapshot, news bool) (signal bool, wait time.Duration),
) error {
	state, news := pending{}, true
	for {
		snapshot := s.Mirror.Snapshot()
		signal, wait := due(&state, snapshot, news)
		if signal {
			if err := s.announce(ctx, snapshot.Time); err != nil {
				state, wait = pending{signalled: time.Now()}, signalEvery
			}
		}
		if signal || wait == 0 {
			news = false
		}
		for _, event := range awaitEvents(ctx, events, wait) {
			news = news || isNews(event.Kind)
		}
		_ = sleep(ctx, rest)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// announce tells Provisioning that there was something to plan at a moment. An error has been logged.
func (s *Starter) announce(ctx context.Context, seen time.Time) error {
	err := s.signal(ctx, workflows.ProvisioningOptions(s.Cluster), workflows.ProvisioningType,
		workflows.ProvisioningInput{Cluster: s.Cluster, ClusterUID: s.ClusterUID}, workflows.SignalPodsPending, workflows.PodsPending{Seen: seen})
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("could not announce that there is something to plan", zap.Error(err))
	}
	return err
}

// awaitEvents waits for events, at most for wait where it is not zero.
func awaitEvents(ctx context.Context, events *cluster.Subscription, wait time.Duration) []cluster.Event {
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-events.C:
		return events.Take()
	}
	return nil
}
