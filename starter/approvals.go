package starter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// proposeAfter is how long a decision must have held before people are asked to approve it, and how long it must have been
	// outdated before they need not decide any more: what changes every few seconds is not worth a person's time.
	proposeAfter = 15 * time.Second
	// askAgain is how long after an approval was started it is started once more if no NodeClaim shows it.
	askAgain = time.Minute
)

// ApprovalMetrics shows what waits for a person's approval. A nil one shows nothing.
type ApprovalMetrics struct{ waiting, oldest *prometheus.GaugeVec }

// NewApprovalMetrics registers the metrics. Metrics that are already registered are reused.
func NewApprovalMetrics(registry prometheus.Registerer) (*ApprovalMetrics, error) {
	labels := []string{"nodepool", "reason"}
	m := &ApprovalMetrics{
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tenon", Subsystem: "approvals", Name: "waiting",
			Help: "Decisions that wait for a person's approval. Only the leader shows them."}, labels),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tenon", Subsystem: "approvals", Name: "oldest_timestamp_seconds",
			Help: "Since when the oldest of the decisions that wait for a person's approval has waited. Only the leader shows it."}, labels),
	}
	return m, errors.Join(register(registry, &m.waiting), register(registry, &m.oldest))
}

// show replaces what the metrics show.
func (m *ApprovalMetrics) show(waiting map[string]waitingApproval) {
	if m == nil {
		return
	}
	m.waiting.Reset()
	m.oldest.Reset()
	oldest := map[[2]string]time.Time{}
	for _, w := range waiting {
		key := [2]string{w.pool, string(w.Reason)}
		m.waiting.WithLabelValues(key[0], key[1]).Inc()
		if since, known := oldest[key]; !known || w.Since.Before(since) {
			oldest[key] = w.Since
			m.oldest.WithLabelValues(key[0], key[1]).Set(float64(w.Since.Unix()))
		}
	}
}

// waitingApproval is an approval that waits, with the NodePool of one of its nodes.
type waitingApproval struct {
	karpv1.Approval
	pool string
}

// waitingApprovals returns the approvals that wait, by their ids.
func waitingApprovals(snapshot *plan.Snapshot) map[string]waitingApproval {
	waiting := map[string]waitingApproval{}
	for _, n := range snapshot.Nodes {
		for _, a := range n.Approvals {
			if a.State == karpv1.ApprovalWaiting {
				waiting[a.ID] = waitingApproval{a, n.Pool}
			}
		}
	}
	return waiting
}

// sightings say since when something has been seen at every look.
type sightings map[string]time.Time

// lasting returns which of the ids that a look has seen have been there for proposeAfter, and in how long the next will have.
// It forgets all others.
func (s sightings) lasting(seen []string, now time.Time) (lasting []string, wait time.Duration) {
	maps.DeleteFunc(s, func(id string, _ time.Time) bool { return !slices.Contains(seen, id) })
	wait = idleLookEvery
	for _, id := range seen {
		since, known := s[id]
		if !known {
			s[id], since = now, now
		}
		if rest := since.Add(proposeAfter).Sub(now); rest > 0 {
			wait = min(wait, rest)
		} else {
			lasting = append(lasting, id)
		}
	}
	return lasting, wait
}

// approvals start an Approval for each decision that a person has to approve, and withdraw those whose decision no longer
// holds.
type approvals struct {
	mirror    Mirror
	workflows *signaller
	find      func(ctx context.Context, snapshot *plan.Snapshot) plan.Approvals
	metrics   *ApprovalMetrics
	log       *zap.Logger
	// proposed are the decisions for which there is no Approval, outdated the approvals whose decision does not hold.
	proposed, outdated sightings
	// started says when an Approval was last started that no NodeClaim shows yet.
	started map[string]time.Time
	// waiting are the approvals that the last look saw waiting.
	waiting map[string]waitingApproval
}

// watch looks for decisions until ctx ends, after every change and regularly. In a cluster without approvals it costs nothing.
func (a *approvals) watch(ctx context.Context) error {
	events := a.mirror.Subscribe(cluster.NodeEmptied, cluster.NodeChanged, cluster.ClaimChanged, cluster.PoolChanged, cluster.PodsChanged, cluster.BudgetsChanged, cluster.PausesChanged)
	defer events.Close()
	defer a.metrics.show(nil)
	for {
		began := time.Now()
		wait := a.look(ctx, began)
		rest := max(settle, restFor*time.Since(began))
		awaitEvents(ctx, events, wait)
		if err := smithytime.SleepWithContext(ctx, rest); err != nil {
			return err
		}
		events.Take()
	}
}

// look starts and withdraws what is due, and returns when to look again without a change.
func (a *approvals) look(ctx context.Context, now time.Time) time.Duration {
	if err := a.mirror.Fresh(freshEnough); err != nil {
		return staleAgain
	}
	snapshot := a.mirror.Snapshot()
	waiting := waitingApprovals(snapshot)
	a.metrics.show(waiting)
	for _, id := range slices.Sorted(maps.Keys(a.waiting)) {
		if _, still := waiting[id]; !still {
			a.withdraw(ctx, id, "none of its NodeClaims is there any more")
		}
	}
	a.waiting = waiting
	var found plan.Approvals
	if len(waiting) > 0 || slices.ContainsFunc(snapshot.NodePools, func(pool *karpv1.NodePool) bool { return pool.Annotations[karpv1.ApprovalAnnotationKey] != "" }) {
		found = a.find(ctx, snapshot)
	}
	outdated, wait := a.outdated.lasting(slices.Sorted(maps.Keys(found.Outdated)), now)
	for _, id := range outdated {
		a.withdraw(ctx, id, found.Outdated[id])
	}
	ids, proposals := make([]string, 0, len(found.Proposals)), make(map[string]plan.Proposal, len(found.Proposals))
	for _, proposal := range found.Proposals {
		ids, proposals[proposal.ID] = append(ids, proposal.ID), proposal
	}
	maps.DeleteFunc(a.started, func(_ string, at time.Time) bool { return now.Sub(at) >= askAgain })
	proposed, next := a.proposed.lasting(ids, now)
	for _, id := range proposed {
		if _, lately := a.started[id]; !lately {
			a.start(ctx, snapshot, proposals[id], now)
		}
	}
	return min(wait, next)
}

// start starts the Approval of a proposal, unless it runs.
func (a *approvals) start(ctx context.Context, snapshot *plan.Snapshot, proposal plan.Proposal, now time.Time) {
	in := workflows.ApprovalInput{Cluster: a.workflows.cluster, ClusterUID: a.workflows.clusterUID, Proposal: workflows.Proposal{ID: proposal.ID, Reason: string(proposal.Reason),
		For: proposal.For, Does: proposal.Does, Moves: proposal.Moves, SavesPerHour: proposal.SavesPerHour, Zone: proposal.Zone}}
	expires := karpv1.ApprovalExpiresAfter
	for _, n := range snapshot.Nodes {
		if !slices.Contains(proposal.Nodes, n.Key()) {
			continue
		}
		in.Nodes = append(in.Nodes, workflows.RemovedNode{Node: n.Name, NodeUID: string(n.UID), NodePool: n.Pool, Claim: workflows.ClaimRef{Name: n.Claim, UID: string(n.ClaimUID)}})
		if pool := a.mirror.NodePool(n.Pool); pool != nil && pool.NeedsApproval(proposal.Reason) {
			if own, err := pool.ApprovalExpiry(); err == nil {
				expires = own
			}
		}
	}
	in.Expires = int64(expires / time.Second)
	if err := a.workflows.approve(ctx, in); err != nil {
		if ctx.Err() == nil {
			a.log.Warn("could not ask for approval", zap.String("approval", proposal.ID), zap.Error(err))
		}
		return
	}
	if a.started == nil {
		a.started = map[string]time.Time{}
	}
	a.started[proposal.ID] = now
}

// withdraw tells an Approval that its decision no longer holds. It does nothing if the Approval is over.
func (a *approvals) withdraw(ctx context.Context, id, why string) {
	if err := a.workflows.withdraw(ctx, id, why); err != nil && ctx.Err() == nil {
		a.log.Warn("could not withdraw an approval", zap.String("approval", id), zap.Error(err))
	}
}
