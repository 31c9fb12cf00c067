package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// DisruptionReasons are the reasons for which Disrupt takes nodes away, in the order in which it asks.
func DisruptionReasons() []karpv1.DisruptionReason {
	return []karpv1.DisruptionReason{DisruptionReasonOverprovisioned, karpv1.DisruptionReasonEmpty, DisruptionReasonExpired,
		karpv1.DisruptionReasonDrifted, karpv1.DisruptionReasonUnderutilized}
}

// Disrupt finds everything that may be taken away now, and says of every other node of a NodePool what keeps it, for each
// reason. A node goes for the first reason that lets it: what static pools have too many of, what is empty, what has
// expired, what has drifted, what is not used well enough.
func Disrupt(in Input) Disruption {
	d := newDecision(in)
	d.judgeAll()
	d.overprovisioned()
	d.emptied()
	return d.done()
}

// decision is one evaluation under way.
type decision struct {
	in    Input
	judge *judge
	book  *budgets
	rates *rates
	// candidates are, for each reason, the nodes that their own rules let go.
	candidates map[karpv1.DisruptionReason][]*candidate
	// going are the nodes that are in a command.
	going map[string]bool
	found Disruption
}

func newDecision(in Input) *decision {
	d := &decision{in: in, judge: newJudge(&in), rates: newRates(in.Pools), candidates: map[karpv1.DisruptionReason][]*candidate{}, going: map[string]bool{}}
	d.book = newBudgets(&in, d.judge.pools)
	return d
}

// judgeAll asks the rules about every node and every reason but DisruptionReasonOverprovisioned.
func (d *decision) judgeAll() {
	for _, n := range d.in.Snapshot.Nodes {
		if !n.Managed() {
			continue
		}
		var as *candidate
		for _, reason := range DisruptionReasons()[1:] {
			if kept := d.judge.keeps(n, reason); kept != nil {
				d.verdict(n, reason, kept.cause, kept.message)
				d.lookAt(kept.until)
				continue
			}
			if as == nil {
				as = &candidate{node: n, pool: d.judge.pools[n.Pool], cost: disruptionCost(n), pods: n.reschedulable()}
				as.price, as.known = d.rates.of(n)
			}
			d.candidates[reason] = append(d.candidates[reason], as)
		}
	}
}

// overprovisioned gives up what static pools have too many of.
func (d *decision) overprovisioned() {
	for _, command := range Overprovision(d.in.Snapshot) {
		d.command(command)
		d.book.take(d.nodePool(command.Nodes[0]), command.Reason, len(command.Nodes))
	}
	for _, n := range d.in.Snapshot.Nodes {
		if !n.Managed() || d.going[n.Key()] {
			continue
		}
		message := "its NodePool is not static"
		if pool := d.judge.pools[n.Pool]; pool != nil && pool.Spec.Replicas != nil {
			message = "its NodePool has no more nodes than its replicas, besides those that go"
		}
		d.verdict(n, DisruptionReasonOverprovisioned, CauseNone, message)
	}
}

func (d *decision) nodePool(key string) string {
	at := slices.IndexFunc(d.in.Snapshot.Nodes, func(n *Node) bool { return n.Key() == key })
	return d.in.Snapshot.Nodes[at].Pool
}

// open are the candidates for a reason that are in no command yet.
func (d *decision) open(reason karpv1.DisruptionReason) []*candidate {
	return slices.DeleteFunc(d.candidates[reason], func(c *candidate) bool { return d.going[c.node.Key()] })
}

// command adds a command.
func (d *decision) command(command Command) {
	for _, node := range command.Nodes {
		d.going[node] = true
	}
	d.found.Commands = append(d.found.Commands, command)
}

// refuse says that nothing is left of the budgets for a candidate.
func (d *decision) refuse(c *candidate, reason karpv1.DisruptionReason) {
	cause, message := d.book.refusal(c.node.Pool, reason)
	d.verdict(c.node, reason, cause, message)
	d.lookAt(d.book.opens(c.node.Pool, reason))
}

func (d *decision) verdict(n *Node, reason karpv1.DisruptionReason, cause Cause, message string) {
	d.found.Verdicts = append(d.found.Verdicts, Verdict{Node: n.Key(), Reason: reason, Cause: cause, Message: message})
}

// lookAt brings NextLook forward to a time, if it is one.
func (d *decision) lookAt(when time.Time) {
	if !when.IsZero() && (d.found.NextLook.IsZero() || when.Before(d.found.NextLook)) {
		d.found.NextLook = when
	}
}

// done puts the verdicts of the nodes that stay in order.
func (d *decision) done() Disruption {
	rank := map[karpv1.DisruptionReason]int{}
	for i, reason := range DisruptionReasons() {
		rank[reason] = i
	}
	d.found.Verdicts = slices.DeleteFunc(d.found.Verdicts, func(v Verdict) bool { return d.going[v.Node] })
	slices.SortStableFunc(d.found.Verdicts, func(a, b Verdict) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(rank[a.Reason], rank[b.Reason]))
	})
	return d.found
}
