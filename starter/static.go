package starter

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// watchStatic signals Provisioning while a static pool has fewer nodes than its replicas and may have more. Surplus
// nodes are left to disruption.watch.
func (p *provisioning) watchStatic(ctx context.Context) error {
	events := p.mirror.Subscribe(cluster.PoolChanged, cluster.ClassChanged, cluster.ClaimChanged, cluster.NodeChanged)
	defer events.Close()
	isNews := func(kind cluster.EventKind) bool { return kind == cluster.ClassChanged }
	// In a large cluster claims and nodes change all the time, and each look may need a new snapshot.
	return p.announceWhile(ctx, events, isNews, signalEvery, func(state *pending, snapshot *plan.Snapshot, news bool) (bool, time.Duration) {
		signal, wait := state.lacking(snapshot, news)
		if signal && p.mirror.Fresh(freshEnough) != nil {
			*state = pending{}
			return false, staleAgain
		}
		return signal, wait
	})
}

// lacking does the work of due for the nodes that static pools lack and may launch: the same number for the same pool
// is no news.
func (p *pending) lacking(snapshot *plan.Snapshot, news bool) (signal bool, wait time.Duration) {
	waiting := map[types.UID]bool{}
	for _, shortage := range plan.Shortages(snapshot) {
		if shortage.Nodes > 0 {
			key := types.UID(fmt.Sprintf("%s lacks %d", shortage.Pool, shortage.Nodes))
			waiting[key] = true
			news = news || !p.announced[key]
		}
	}
	return p.decide(snapshot.Time, waiting, news)
}
