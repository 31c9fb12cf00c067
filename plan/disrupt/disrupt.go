package disrupt

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// Disrupt finds all nodes that may be disrupted now, and says what keeps every other node of a NodePool, for each reason. A
// node is disrupted for the first reason that allows it: it is surplus in a static pool, empty, expired, drifted or
// underutilized.
func Disrupt(in model.Input) model.Disruption {
	d := &decision{in: in, judge: newJudge(&in), rates: newRates(&in), rollouts: newRollouts(&in), candidates: map[karpv1.DisruptionReason][]*candidate{}, going: map[string]bool{}}
	d.book = newBudgets(&in, d.judge.pools)
	d.judgeAll()
	d.overprovisioned()
	d.renewed(DisruptionReasonExpired, true)
	d.renewed(karpv1.DisruptionReasonDrifted, true)
	d.emptied()
	d.renewed(DisruptionReasonExpired, false)
	d.renewed(karpv1.DisruptionReasonDrifted, false)
	d.underutilized()
	return d.done()
}

// judgeAll judges every node for every reason.
func (d *decision) judgeAll() {
	d.found.Verdicts = make([]model.Verdict, 0, len(d.in.Snapshot.Nodes)) // most nodes have one
	for _, n := range d.in.Snapshot.Nodes {
		if !n.Managed() {
			continue
		}
		var as *candidate
		for _, reason := range DisruptionReasons() {
			kept := d.judge.keeps(n, reason)
			if kept != nil {
				d.keep(n, reason, kept)
			}
			soon := kept != nil && reason == underutilized && d.judge.soonQuiet(n, kept)
			if kept != nil && !soon {
				continue
			}
			if as == nil {
				as = &candidate{node: n, pool: d.judge.pools[n.Pool], cost: lifecycle.DisruptionCost(n), pods: n.Reschedulable()}
				as.price, as.known = d.rates.of(n)
			}
			as.soon = soon
			d.candidates[reason] = append(d.candidates[reason], as)
		}
	}
}

// overprovisioned removes the surplus nodes of static pools.
func (d *decision) overprovisioned() {
	for _, command := range lifecycle.Overprovision(d.in.Snapshot) {
		d.command(command)
	}
	for _, n := range d.in.Snapshot.Nodes {
		if d.going[n.Key()] {
			d.book.take(n.Pool, lifecycle.DisruptionReasonOverprovisioned, 1)
		}
	}
}

// underutilized removes the nodes that the cluster does not need, or that a cheaper one can replace.
func (d *decision) underutilized() {
	candidates := d.open(d.candidates[underutilized])
	now := slices.DeleteFunc(slices.Clone(candidates), func(c *candidate) bool { return c.soon })
	if len(now) == 0 {
		return
	}
	if until := d.unplanned(); !until.IsZero() {
		for _, c := range now {
			d.keep(c.node, underutilized, staysUntil(until, model.CauseQuiet, "pods have come that no plan has been made for yet"))
		}
		return
	}
	consolidate(d, candidates)
	for _, one := range d.open(now) {
		d.keep(one.node, underutilized, one.kept)
	}
}

// planSoon is how long pods that wait for a node have to be planned for before Disrupt looks for better uses of existing
// nodes.
const planSoon = 30 * time.Second

// unplanned returns when planSoon is over for the last of the pods that have begun to wait for a node and were promised
// none; zero if it is over for all. The nodes that are about to be launched for them are not in the snapshot yet, so that
// consolidation would decide now what is wrong a moment later. Older pods may wait forever and stop nothing.
func (d *decision) unplanned() (until time.Time) {
	waits, _ := d.in.Snapshot.WaitingForNode()
	promised := map[types.UID]bool{}
	for _, n := range d.in.Snapshot.Nodes {
		for _, uid := range n.Promised {
			promised[uid] = true
		}
	}
	for _, pod := range waits {
		if end := pod.Created.Add(planSoon); !pod.Virtual && !promised[pod.UID] && d.judge.now.Before(end) {
			until = model.Later(until, end)
		}
	}
	return until
}

// done returns the result, with the verdicts of the nodes that stay in order.
func (d *decision) done() model.Disruption {
	order := DisruptionReasons()
	d.found.Verdicts = slices.DeleteFunc(d.found.Verdicts, func(v model.Verdict) bool { return d.going[v.Node] })
	slices.SortStableFunc(d.found.Verdicts, func(a, b model.Verdict) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(slices.Index(order, a.Reason), slices.Index(order, b.Reason)))
	})
	return d.found
}
