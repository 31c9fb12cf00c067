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
	// maxExpecting is how long a node that may take pods is kept closed for nominations, its own and those of nodes that
	// are before it in line. At the usual rate there are four thousand of them in this time. maxDependent is how long it is
	// kept closed for those of its pods that depend on it. Both count from when it became Ready: an activity that is tried
	// again does not begin anew, or nodes would never open where Temporal is too slow for heartbeats. minTurn is how long
	// each try has all the same.
	maxExpecting = time.Minute
	maxDependent = 3 * time.Minute
	minTurn      = 5 * time.Second
)

// Expects says whether a claim's node is to be kept closed until pods are nominated to it.
func (n *Nominator) Expects(claim *karpv1.NodeClaim) bool {
	return n.Works() && len(claim.Spec.StartupTaints) == 0 && len(n.mirror.Promised(claim.Name)) > 0
}

// Open nominates the pods that were planned for a claim's node, now that nothing but our taint keeps them away, has it
// opened, and returns how many were nominated, and what opening it returned. One node is opened after the other: a pod
// that is tried after it was nominated, and before its node is open, loses the nomination, so this time has to be short.
// A node whose turn does not come in time is opened for those pods that depend on it, and the others are told of when it
// is open. It takes a bounded time: what is not nominated by then is left to chance, and to repeat.
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
	// Those that depend on the node come last, and again if they have lost the nomination meanwhile.
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

// lost are the pods that were told of a moment ago, and whose nominations were taken back since.
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
