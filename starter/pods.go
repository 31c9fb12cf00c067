package starter

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// watchPods signals Provisioning while pods are pending.
func (p *provisioning) watchPods(ctx context.Context) error {
	events := p.mirror.Subscribe(cluster.PodsPending, cluster.PoolEdited, cluster.ClassChanged, cluster.StorageChanged, cluster.DevicesChanged)
	defer events.Close()
	isNews := func(kind cluster.EventKind) bool { return kind != cluster.PodsPending }
	return p.announceWhile(ctx, events, isNews, 0, (*pending).due)
}

// due says whether to signal now, and otherwise when to look again; zero means only after a change. It does not count
// pods that a plan has promised to a machine which is still starting; once it has started, the kube-scheduler gets
// retryFirst to bind them. It also looks again after retryFirst when the kube-scheduler means to preempt for pods.
// News, a change of pools, classes, volumes or devices, counts like a new pod. Virtual pods are left to buffers.watch.
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

// promises returns the pods that were planned for a machine, with true for those whose machine is still starting or has
// just started. A machine that is being deleted keeps no promise.
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
