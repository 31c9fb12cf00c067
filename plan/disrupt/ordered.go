package disrupt

import (
	"cmp"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Replace decides how nodes are replaced that a person has ordered to be replaced: each with a command of its own, which
// launches what its pods need and the other nodes have no room for.
func Replace(in model.Input, order model.ReplacementOrder) model.OrderedReplacements {
	d := &decision{in: in, judge: newJudge(&in), rates: newRates(&in), candidates: map[karpv1.DisruptionReason][]*candidate{}, going: map[string]bool{}}
	d.book = newBudgets(&in, d.judge.pools)
	var found model.OrderedReplacements
	for _, n := range in.Snapshot.Nodes {
		if !slices.Contains(order.Nodes, n.Key()) {
			continue
		}
		if kept := d.judge.refuses(n); kept != nil {
			d.keep(n, DisruptionReasonOrdered, kept)
			continue
		}
		c := &candidate{node: n, pool: d.judge.pools[n.Pool], pods: n.Reschedulable()}
		c.price, c.known = d.rates.of(n)
		d.candidates[DisruptionReasonOrdered] = append(d.candidates[DisruptionReasonOrdered], c)
	}
	if order.Launch && len(d.candidates) > 0 {
		d.simulationOf().closeAll()
	}
	for _, c := range d.candidates[DisruptionReasonOrdered] {
		despite := d.judge.objections(c.node, c.pool, d.book)
		claims, kept := d.replacedOnOrder(c)
		if kept != nil {
			d.keep(c.node, DisruptionReasonOrdered, kept)
			continue
		}
		for _, objection := range despite {
			objection.Node, objection.Reason = c.node.Key(), DisruptionReasonOrdered
			found.Despite = append(found.Despite, *objection)
		}
		d.relocations++
		d.book.take(c.node.Pool, DisruptionReasonOrdered, 1)
		d.decide(DisruptionReasonOrdered, []*candidate{c}, claims, order.Grounds)
	}
	found.Commands, found.Kept = d.found.Commands, d.found.Verdicts
	return found
}

// replacedOnOrder finds places for the pods of a node, on as many new nodes as have to be bought. A node of a static pool is
// replaced by one like it.
func (d *decision) replacedOnOrder(c *candidate) ([]model.Claim, *model.Verdict) {
	switch {
	case d.relocations >= maxRelocations:
		return nil, stays(model.CauseQuiet, "one order replaces at most %d nodes", maxRelocations)
	case c.pool.Spec.Replicas != nil:
		return d.replacedStatic(c)
	}
	return d.replaced(c)
}

// refuses says why a node cannot be replaced, whoever wants it; nil if it can.
func (j *judge) refuses(n *model.Node) *model.Verdict {
	switch {
	case !n.Managed():
		return stays(model.CausePolicy, "it does not come from a NodePool")
	case n.Leaving():
		return stays(model.CauseLeaving, "it is already being removed")
	case j.pools[n.Pool] == nil:
		return stays(model.CausePolicy, "its NodePool %q does not exist", n.Pool)
	case !n.Initialized:
		return stays(model.CauseNode, "it is not initialized")
	}
	return cmp.Or(j.nominated(n), j.expects(n))
}

// objections says what would keep a node if no person had ordered its replacement, and what will hold up its drain.
func (j *judge) objections(n *model.Node, pool *karpv1.NodePool, book *budgets) []*model.Verdict {
	all := []*model.Verdict{j.stopped(pool, karpv1.DisruptionReasonDrifted), j.keepsZone(n), j.keepsNode(n), j.keepsPods(n, DisruptionReasonOrdered)}
	if book.left(n.Pool, DisruptionReasonOrdered) <= 0 {
		all = append(all, stays(model.CauseBudget, "budgets and rates allow no further node of its NodePool to be disrupted now"))
	}
	return slices.DeleteFunc(all, func(v *model.Verdict) bool { return v == nil })
}

// closeAll keeps the pods that trials move off all nodes that exist, so that a place for them has to be bought.
func (f *Simulation) closeAll() {
	for _, slot := range f.Distribution.Existing {
		slot.Closed = true
	}
	f.unready = nil
	clear(f.openings)
}
