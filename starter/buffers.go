package starter

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/starter/status"
)

// buffersSettle is how long changes are collected before buffers are looked at again.
const buffersSettle = time.Second

// buffers signals Provisioning while capacity that CapacityBuffers ask for is missing.
type buffers struct {
	*provisioning
	// status writes what was found; that is done here because finding it takes a plan.
	status status.Buffers
}

// watch looks at buffers until ctx ends. Whether capacity is missing follows from the mirror alone, so it is evaluated
// after every change; in a cluster without buffers there is nothing to do.
func (b *buffers) watch(ctx context.Context) error {
	events := b.mirror.Subscribe(cluster.BuffersChanged, cluster.PodsPending, cluster.PodsChanged, cluster.NodeChanged, cluster.ClaimChanged,
		cluster.PoolEdited, cluster.ClassChanged)
	defer events.Close()
	isNews := func(kind cluster.EventKind) bool { return kind == cluster.PoolEdited || kind == cluster.ClassChanged }
	return b.announceWhile(ctx, events, isNews, buffersSettle, func(state *pending, snapshot *plan.Snapshot, news bool) (bool, time.Duration) {
		return b.due(ctx, state, snapshot, news)
	})
}

// due says whether to signal Provisioning, and when to look again. It also writes the status of the buffers.
func (b *buffers) due(ctx context.Context, state *pending, snapshot *plan.Snapshot, news bool) (signal bool, wait time.Duration) {
	all := b.mirror.Buffers()
	if len(all) == 0 {
		return state.decide(snapshot.Time, nil, false)
	}
	if err := b.mirror.Fresh(freshEnough); err != nil {
		return false, staleAgain
	}
	headroom := plan.FindHeadroom(snapshot)
	missing := map[types.UID]bool{}
	for _, pod := range headroom.Missing {
		missing[pod.UID] = true
		news = news || !state.announced[pod.UID]
	}
	signal, wait = state.decide(snapshot.Time, missing, news)
	if again := b.status.Keep(ctx, all, snapshot.Nodes, headroom.At); again > 0 {
		wait = again
	}
	return signal, wait
}
