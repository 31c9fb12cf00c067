package disrupt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// DisruptionReasons returns the reasons for which Disrupt removes nodes, in the order in which it checks them.
func DisruptionReasons() []karpv1.DisruptionReason {
	return []karpv1.DisruptionReason{lifecycle.DisruptionReasonOverprovisioned, karpv1.DisruptionReasonEmpty, DisruptionReasonExpired,
		karpv1.DisruptionReasonDrifted, karpv1.DisruptionReasonUnderutilized}
}

// Although returns the beginning of a sentence that says why a node stays although reason applies to it, such as "it has
// drifted, but ". It is empty for reasons that state no fact about the node.
func Although(reason karpv1.DisruptionReason) string {
	switch reason {
	case karpv1.DisruptionReasonDrifted:
		return "it has drifted, but "
	case DisruptionReasonExpired:
		return "it has expired, but "
	case karpv1.DisruptionReasonEmpty:
		return "it is empty, but "
	}
	return ""
}

// decision is one evaluation under way.
type decision struct {
	in    model.Input
	judge *judge
	book  *budgets
	rates rates
	// rollouts say how many drifted nodes may be replaced.
	rollouts *rollouts
	// candidates are, by reason, the nodes that may be disrupted now or soon by their own rules.
	candidates map[karpv1.DisruptionReason][]*candidate
	// going are the nodes that are in a command.
	going map[string]bool
	// relocations counts the commands that replace nodes.
	relocations int
	// simulation answers what happens to the cluster without some nodes; nil until it is needed.
	simulation *Simulation
	found      model.Disruption
}

// simulationOf returns the simulation of the cluster, without the nodes that are already being removed for reasons that do
// not need room elsewhere.
func (d *decision) simulationOf() *Simulation {
	if d.simulation != nil {
		return d.simulation
	}
	var movable []*model.Node
	listed := map[string]bool{}
	for _, reason := range append(DisruptionReasons(), DisruptionReasonOrdered) {
		candidates := d.open(d.candidates[reason])
		slices.SortFunc(candidates, func(a, b *candidate) int { return strings.Compare(a.node.Key(), b.node.Key()) })
		if reason == karpv1.DisruptionReasonUnderutilized {
			slices.SortFunc(candidates, bySavings)
		}
		for _, c := range candidates {
			if key := c.node.Key(); c.pool.Spec.Replicas == nil && !listed[key] {
				listed[key] = true
				movable = append(movable, c.node)
			}
		}
	}
	in := d.in
	in.Snapshot = with(in.Snapshot, func(n *model.Node) bool { return d.going[n.Key()] }, func(n *model.Node) { n.Deleting = true })
	d.simulation = NewSimulation(in, movable)
	_, until := in.Snapshot.Arriving()
	d.lookAt(until)
	return d.simulation
}

// open returns those of some candidates that are in no command yet.
func (d *decision) open(candidates []*candidate) []*candidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(c *candidate) bool { return d.going[c.node.Key()] })
}

// decide adds the command to remove candidates, for claims or because their pods fit on other nodes, and the grounds for
// it.
func (d *decision) decide(reason karpv1.DisruptionReason, sources []*candidate, claims []model.Claim, because string) {
	command := model.Command{Reason: reason, Replacements: claims, Moves: podsOf(sources), SavesPerHour: savings(sources, claims), Zone: zoneOf(sources)}
	for _, source := range sources {
		command.Nodes = append(command.Nodes, source.node.Key())
	}
	pods := fmt.Sprintf("%d pods", command.Moves)
	if command.Moves == 1 {
		pods = "1 pod"
	}
	switch {
	case len(claims) > 1:
		command.Why = fmt.Sprintf("%d new nodes and those that are there take %s", len(claims), pods)
	case len(claims) == 1:
		claim := &claims[0]
		command.Why = fmt.Sprintf("%s %s at %s an hour takes %s", claim.InstanceTypes[0], claim.CapacityType, cloud.Money(strings.Join(claim.Zones, " "), claim.PricePerHour), pods)
	case command.Moves > 0:
		command.Why = pods + " can go to other nodes"
	default:
		command.Why = "no pods have to move"
	}
	if because != "" {
		command.Why = because + "; " + command.Why
	}
	if command.SavesPerHour > 0 {
		command.Why += fmt.Sprintf(", which saves %s an hour", cloud.Money(command.Zone, command.SavesPerHour))
	}
	if by := d.approvedBy(sources, reason); by != "" {
		command.Why += "; approved by " + by
	}
	d.command(command)
}

// approvedBy says who approved that candidates go for a reason; empty if nobody had to.
func (d *decision) approvedBy(sources []*candidate, reason karpv1.DisruptionReason) string {
	var names []string
	for _, c := range sources {
		if !c.pool.NeedsApproval(reason) {
			continue
		}
		found := karpv1.ApprovalOf(c.node.Approvals, reason, c.node.DriftHash, d.in.Snapshot.Time)
		if found != nil && found.State == karpv1.ApprovalGranted && !slices.Contains(names, found.By) {
			names = append(names, found.By)
		}
	}
	return strings.Join(names, ", ")
}

// savings returns how much less the cluster costs, in US dollars per hour, with claims in the place of candidates; zero if
// that is not known.
func savings(sources []*candidate, claims []model.Claim) (saves float64) {
	for _, source := range sources {
		if len(claims) > 0 && !source.known {
			return 0
		}
		saves += source.price
	}
	return saves - model.Plan{Claims: claims}.PricePerHour()
}

// podsOf returns how many pods of candidates need another place.
func podsOf(candidates []*candidate) int {
	pods := 0
	for _, one := range candidates {
		pods += len(one.pods)
	}
	return pods
}

// command adds a command.
func (d *decision) command(command model.Command) {
	for _, node := range command.Nodes {
		d.going[node] = true
	}
	d.found.Commands = append(d.found.Commands, command)
}

// keep records what keeps a node, and brings NextLook forward to the time when that ends.
func (d *decision) keep(n *model.Node, reason karpv1.DisruptionReason, kept *model.Verdict) {
	verdict := *kept
	verdict.Node, verdict.Reason = n.Key(), reason
	d.found.Verdicts = append(d.found.Verdicts, verdict)
	d.lookAt(kept.Until)
}

// lookAt brings NextLook forward to a time; zero for none.
func (d *decision) lookAt(until time.Time) {
	if next := &d.found.NextLook; !until.IsZero() && (next.IsZero() || until.Before(*next)) {
		*next = until
	}
}
