package disrupt

import (
	"cmp"
	"slices"
	"strings"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// maxRelocations limits the commands of one evaluation that replace nodes: their claims are recorded in a history. The rest
// is left to the next evaluation, which follows at once.
const maxRelocations = 50

// renewed replaces the nodes that have expired or drifted, of static pools or of all others. Each is a command of its own,
// so that none waits for another; a node that cannot be replaced does not stop the others.
func (d *decision) renewed(reason karpv1.DisruptionReason, static bool) {
	replaced := d.replaced
	if static {
		replaced = d.replacedStatic
	}
	for _, c := range d.inTurn(reason) {
		if static != (c.pool.Spec.Replicas != nil) {
			continue
		}
		var claims []model.Claim
		kept := cmp.Or(d.rollouts.refusal(c.node, c.pool, reason), d.book.refusal(c.node.Pool, reason))
		switch {
		case kept != nil:
		case d.relocations >= maxRelocations:
			d.found.Again = true
			kept = stays(model.CauseQuiet, "%d other nodes are replaced first", maxRelocations)
		default:
			claims, kept = replaced(c)
		}
		if kept != nil {
			d.keep(c.node, reason, kept)
			continue
		}
		d.relocations++
		d.book.take(c.node.Pool, reason, 1)
		d.rollouts.take(c.node.Pool, reason)
		d.decide(reason, []*candidate{c}, claims, renewedFor(c.node, reason))
	}
}

// renewedFor says why a node is replaced.
func renewedFor(n *model.Node, reason karpv1.DisruptionReason) string {
	switch {
	case reason == DisruptionReasonExpired && n.ExpireOrder != nil:
		return n.ExpireOrder.String()
	case reason == DisruptionReasonExpired:
		return "it has expired"
	case n.DriftedFor != "":
		return "it has drifted (" + n.DriftedFor + ")"
	}
	return "it has drifted"
}

// replaced finds places for the pods of a node on other nodes, and on as many new ones as have to be bought.
func (d *decision) replaced(c *candidate) ([]model.Claim, *model.Verdict) {
	claims, kept := d.simulationOf().Relocate([]*model.Node{c.node}, anyNumber, nil)
	if kept == nil {
		d.simulation.keep()
	}
	return claims, kept
}

// replacedStatic replaces a node of a static pool with one like it. It does not check for room: the pods find it on the
// replacement.
func (d *decision) replacedStatic(c *candidate) ([]model.Claim, *model.Verdict) {
	of := d.book.pools[c.pool.Name]
	if limit, limited := c.pool.Spec.Limits[karpv1.ResourceNodes]; limited && int64(of.claims) >= limit.Value() {
		return nil, stays(model.CauseRoom, "limit nodes %d of its NodePool leaves no room for a replacement beside it", limit.Value())
	}
	at := slices.IndexFunc(d.in.Pools, func(p model.Pool) bool { return p.NodePool.Name == c.pool.Name })
	if at < 0 {
		return nil, stays(model.CauseRoom, "no replacement can be launched: what its NodePool may launch is not known")
	}
	claim, why := lifecycle.StaticClaim(&d.in, d.in.Pools[at])
	if why != "" {
		return nil, stays(model.CauseRoom, "no replacement can be launched: %s", why)
	}
	of.claims++
	return []model.Claim{claim}, nil
}

// inTurn returns the candidates for a reason in the order in which they are replaced: first those without pods that would
// have to move, then those for which the reason has held the longest.
func (d *decision) inTurn(reason karpv1.DisruptionReason) []*candidate {
	since := func(c *candidate) time.Time {
		switch {
		case reason != DisruptionReasonExpired:
			return c.node.DriftedAt
		case c.node.ExpireOrder != nil:
			return c.node.ExpireOrder.At
		}
		return c.node.ExpiresAt()
	}
	candidates := d.open(d.candidates[reason])
	slices.SortFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(model.Flag(len(a.pods) > 0), model.Flag(len(b.pods) > 0)), since(a).Compare(since(b)), strings.Compare(a.node.Key(), b.node.Key()))
	})
	return candidates
}
