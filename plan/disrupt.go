package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	d.renewedStatic(DisruptionReasonExpired)
	d.renewedStatic(karpv1.DisruptionReasonDrifted)
	d.emptied()
	d.renewed(DisruptionReasonExpired)
	d.renewed(karpv1.DisruptionReasonDrifted)
	d.underutilized()
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
	// rivals are nodes that will be candidates for being underutilized in a moment.
	rivals []*candidate
	// going are the nodes that are in a command.
	going map[string]bool
	// relocations counts the commands that replace nodes.
	relocations int
	// field is the state of the cluster in which it is asked what becomes of it without some nodes; nil until somebody asks.
	field *field
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
				d.verdict(n, reason, *kept)
				if reason == karpv1.DisruptionReasonUnderutilized && d.judge.soonQuiet(n, kept) {
					rival := d.candidate(n)
					rival.soon = true
					d.rivals = append(d.rivals, rival)
				}
				continue
			}
			if as == nil {
				as = d.candidate(n)
			}
			d.candidates[reason] = append(d.candidates[reason], as)
		}
	}
}

func (d *decision) candidate(n *Node) *candidate {
	c := &candidate{node: n, pool: d.judge.pools[n.Pool], cost: disruptionCost(n), pods: n.reschedulable()}
	c.price, c.known = d.rates.of(n)
	return c
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
		d.verdict(n, DisruptionReasonOverprovisioned, block{cause: CauseNone, message: message})
	}
}

func (d *decision) nodePool(key string) string {
	at := slices.IndexFunc(d.in.Snapshot.Nodes, func(n *Node) bool { return n.Key() == key })
	return d.in.Snapshot.Nodes[at].Pool
}

// theField is the cluster without the nodes that go already for reasons that ask nobody for room.
func (d *decision) theField() *field {
	if d.field != nil {
		return d.field
	}
	var movable []*Node
	listed := map[string]bool{}
	for _, reason := range DisruptionReasons() {
		candidates := d.open(reason)
		slices.SortFunc(candidates, func(a, b *candidate) int { return strings.Compare(a.node.Key(), b.node.Key()) })
		if reason == karpv1.DisruptionReasonUnderutilized {
			candidates = append(candidates, d.rivals...)
			slices.SortFunc(candidates, bySavings)
		}
		for _, c := range candidates {
			if key := c.node.Key(); c.pool.Spec.Replicas == nil && !listed[key] && !d.going[key] {
				listed[key] = true
				movable = append(movable, c.node)
			}
		}
	}
	in := d.in
	if len(d.going) > 0 {
		in.Snapshot = in.Snapshot.without(d.going)
	}
	in.Snapshot = in.Snapshot.withSuccessors(nil)
	d.field = newField(in, movable)
	return d.field
}

// roomMatters says whether it has to be asked where pods find room: where some wait or leave, or where it is asked for
// other nodes anyway.
func (d *decision) roomMatters() bool {
	for _, reason := range DisruptionReasons() {
		if reason != karpv1.DisruptionReasonEmpty && len(d.open(reason)) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(d.in.Snapshot.Pending, (*Pod).placeable) || slices.ContainsFunc(d.in.Snapshot.Nodes, func(n *Node) bool {
		return (n.leaving() || d.going[n.Key()]) && slices.ContainsFunc(n.Pods, (*Pod).Reschedulable)
	})
}

// underutilized takes away the nodes that the cluster does well without, or for which a cheaper one does.
func (d *decision) underutilized() {
	reason := karpv1.DisruptionReasonUnderutilized
	candidates := d.open(reason)
	if len(candidates) == 0 {
		return
	}
	if pods, until := d.unplanned(); pods > 0 {
		for _, c := range candidates {
			d.verdict(c.node, reason, block{cause: CauseQuiet, message: "pods have come that no plan has been made for yet", until: until})
		}
		return
	}
	scores := newBalance(d.in.Snapshot, d.judge.pools, d.rates)
	commands, verdicts := consolidate(d.theField(), &d.in, candidates, d.openRivals(), d.book, scores)
	of := make(map[string]*candidate, len(candidates))
	for _, c := range candidates {
		of[c.node.Key()] = c
	}
	for _, command := range commands {
		var sources []*candidate
		for _, node := range command.Nodes {
			sources = append(sources, of[node])
		}
		command.Why += scores.praise(sources, command.SavesPerHour)
		d.command(command)
	}
	for _, v := range verdicts {
		if c := of[v.Node]; c != nil && v.Cause == CauseBudget {
			v.Until = d.book.opens(c.node.Pool, reason)
		}
		d.say(v)
	}
}

// planSoon is how long pods that wait for a node are given to be planned for before Disrupt looks for better uses of the
// nodes there are.
const planSoon = 30 * time.Second

// unplanned counts the pods that have begun to wait for a node within planSoon and were promised none, and says when that
// is over for the last of them. The nodes that are about to be launched for them are not in the picture yet, so that what
// consolidation makes of it now would be wrong a moment later. Older ones may wait for ever and stop nothing.
func (d *decision) unplanned() (pods int, until time.Time) {
	waits, _ := d.in.Snapshot.WaitingForNode()
	if len(waits) == 0 {
		return 0, until
	}
	promised := map[types.UID]bool{}
	for _, n := range d.in.Snapshot.Nodes {
		for _, uid := range n.Promised {
			promised[uid] = true
		}
	}
	for _, pod := range waits {
		if end := pod.Created.Add(planSoon); !pod.Virtual && !promised[pod.UID] && d.judge.now.Before(end) {
			pods++
			until = later(until, end)
		}
	}
	return pods, until
}

// open are the candidates for a reason that are in no command yet.
func (d *decision) open(reason karpv1.DisruptionReason) []*candidate {
	return slices.DeleteFunc(slices.Clone(d.candidates[reason]), func(c *candidate) bool { return d.going[c.node.Key()] })
}

// openRivals are the rivals that do not go for another reason.
func (d *decision) openRivals() []*candidate {
	return slices.DeleteFunc(slices.Clone(d.rivals), func(c *candidate) bool { return d.going[c.node.Key()] })
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
	d.verdict(c.node, reason, block{cause: cause, message: message, until: d.book.opens(c.node.Pool, reason)})
}

// verdict says what keeps a node.
func (d *decision) verdict(n *Node, reason karpv1.DisruptionReason, kept block) {
	d.say(Verdict{Node: n.Key(), Reason: reason, Cause: kept.cause, Message: kept.message, Until: kept.until})
}

func (d *decision) say(v Verdict) {
	d.found.Verdicts = append(d.found.Verdicts, v)
	d.lookAt(v.Until)
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
