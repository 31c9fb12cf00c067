package nominate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// maxExpecting is how long a node that may take pods is kept closed for nominations, its own and those of nodes ahead
	// of it in line. At the usual rate, four thousand nominations fit into this time. maxDependent is how long it is kept
	// closed for those of its pods that depend on it. Both count from when it became Ready: a retried activity does not
	// start over, or nodes would never open when Temporal is too slow for heartbeats. minTurn is how long each attempt has
	// in any case.
	maxExpecting = time.Minute
	maxDependent = 3 * time.Minute
	minTurn      = 5 * time.Second
)

// Expects reports whether a claim's node has to be kept closed until pods are nominated to it.
func (n *Nominator) Expects(claim *karpv1.NodeClaim) bool {
	return n.Works() && len(claim.Spec.StartupTaints) == 0 && len(n.mirror.Promised(claim.Name)) > 0
}

// Open nominates the pods that were planned for a claim's node, once nothing but our taint keeps them away, and calls open.
// It returns how many pods were nominated, and the error of open. Nodes are opened one at a time: a pod that is tried
// between its nomination and the opening of its node loses the nomination, so this time has to be short. If a node's turn
// comes late, Open nominates only the pods that depend on the node; the others are nominated once it is open. Open takes a
// bounded time: what is not nominated by then is left to chance, and to repeat.
func (n *Nominator) Open(ctx context.Context, claim *karpv1.NodeClaim, of *corev1.Node, open func() error) (int, error) {
	if !n.Works() {
		return 0, open()
	}
	node, now := of.Name, time.Now()
	since := readySince(of, now)
	within := func(most time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, max(since.Add(most).Sub(now), minTurn))
	}
	limited, stop := within(maxExpecting)
	defer stop()
	patient, cease := within(maxDependent)
	defer cease()
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-patient.Done():
		return 0, open()
	}
	pods, dependent := n.promised(claim.Name)
	var told []*plan.Pod
	if limited.Err() == nil {
		told = n.nominateAll(limited, pods[dependent:], node)
	}
	// Nominate those that depend on the node last, and again if they have lost their nomination meanwhile.
	told = append(told, n.nominateAll(patient, pods[:dependent], node)...)
	seen, stopSeeing := context.WithTimeout(ctx, maxExpecting)
	defer stopSeeing()
	for _, pod := range told {
		n.awaitSeen(seen, pod, node)
	}
	n.nominateAll(patient, n.lost(pods[:dependent], node), node)
	if len(pods) > 0 {
		n.mu.Lock()
		n.homes[claim.Name] = node
		n.mu.Unlock()
	}
	return len(told), open()
}

// lost returns the pods that were nominated a moment ago and have lost their nomination since.
func (n *Nominator) lost(pods []*cluster.Pod, node string) []*cluster.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lost []*cluster.Pod
	for _, pod := range pods {
		if now := n.mirror.Pod(pod.Namespace, pod.Name); now != nil && now.UID == pod.UID && now.Node == "" && now.NominatedNode != node {
			delete(n.told, pod.UID)
			lost = append(lost, now)
		}
	}
	return lost
}
