package activities

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// maxNote limits the lines of a note, which the Temporal UI shows and a history records.
const maxNote = 12

// planNote describes in markdown what a plan does: the claims it creates, one line for claims that are alike, and why pods
// are left, the most frequent reason first. refused are the static pools that lack nodes which cannot be launched.
func planNote(packed plan.Plan, pending []*plan.Pod, refused []plan.Reason) string {
	var note strings.Builder
	place := ""
	if len(packed.Claims) > 0 {
		place = strings.Join(packed.Claims[0].Zones, " ")
	}
	fmt.Fprintf(&note, "%s pending: %d for nodes that are there or on their way, %s (%s/h) for others, %s left.\n",
		counted(len(pending), "pod", "pods"), len(packed.Placements), counted(len(packed.Claims), "claim", "claims"), cloud.Money(place, packed.PricePerHour()), counted(len(packed.Unplaced), "pod", "pods"))
	virtual := 0
	for _, pod := range pending {
		if pod.Virtual {
			virtual++
		}
	}
	if virtual > 0 {
		fmt.Fprintf(&note, "%d of the pods stand for room that CapacityBuffers keep free.\n", virtual)
	}
	lines := 0
	for start := 0; start < len(packed.Claims); {
		end, first := start, packed.Claims[start]
		pods := 0
		for ; end < len(packed.Claims) && packed.Claims[end].Group == first.Group; end++ {
			pods += len(packed.Claims[end].Pods)
		}
		if lines++; lines <= maxNote {
			fmt.Fprintf(&note, "\n- %d × %s %s (or %d other types) in %s from NodePool %s for %s", end-start, first.CapacityType,
				first.InstanceTypes[0], len(first.InstanceTypes)-1, strings.Join(first.Zones, ", "), first.NodePool, purpose(pods))
		}
		start = end
	}
	if lines > maxNote {
		fmt.Fprintf(&note, "\n- and %d more groups", lines-maxNote)
	}
	for _, r := range refused {
		fmt.Fprintf(&note, "\n- static NodePool %s has fewer nodes than its replicas: %s", r.NodePool, r.Message)
	}
	count, example := map[string]int{}, map[string]string{}
	for _, u := range packed.Unplaced {
		reason := reasons(u.Reasons)
		count[reason]++
		example[reason] = max(example[reason], u.Pod.Namespace+"/"+u.Pod.Name)
	}
	left := make([]string, 0, len(count))
	for reason := range count {
		left = append(left, reason)
	}
	slices.SortFunc(left, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	for i, reason := range left {
		if i == maxNote {
			fmt.Fprintf(&note, "\n- and %d more reasons", len(left)-maxNote)
			break
		}
		fmt.Fprintf(&note, "\n- %s left, such as %s: %s", counted(count[reason], "pod", "pods"), example[reason], reason)
	}
	return note.String()
}

// purpose says what a launch is for.
func purpose(pods int) string {
	if pods == 0 {
		return "its replicas"
	}
	return counted(pods, "pod", "pods")
}

// maxNamed is how many NodePools one sentence names.
const maxNamed = 5

// reasons joins the reasons of an unplaced pod into one sentence, in their order. It names pools with the same reason
// together.
func reasons(all []plan.Reason) string {
	var order []string
	pools := map[string][]string{}
	for _, r := range all {
		if pools[r.Message] == nil {
			order = append(order, r.Message)
		}
		pools[r.Message] = append(pools[r.Message], strconv.Quote(r.NodePool))
	}
	for i, message := range order {
		switch of := pools[message]; {
		case of[0] == `""`:
		case len(of) == 1:
			order[i] = "NodePool " + of[0] + ": " + message
		case len(of) > maxNamed:
			order[i] = fmt.Sprintf("NodePools %s and %d more: %s", strings.Join(of[:maxNamed], ", "), len(of)-maxNamed, message)
		default:
			order[i] = "NodePools " + strings.Join(of, ", ") + ": " + message
		}
	}
	return strings.Join(order, "; ")
}

// verdictNote describes in markdown what an evaluation found: which nodes are to be removed, and how many stay for each
// reason and cause, with one of them as an example. Reasons that do not apply to a node get no line.
func verdictNote(found plan.Disruption) string {
	var note strings.Builder
	going := map[karpv1.DisruptionReason]int{}
	for _, command := range found.Commands {
		going[command.Reason] += len(command.Nodes)
	}
	type kind struct {
		reason karpv1.DisruptionReason
		cause  plan.Cause
	}
	count, example := map[kind]int{}, map[kind]plan.Verdict{}
	for _, v := range found.Verdicts {
		k := kind{v.Reason, v.Cause}
		if v.Cause == plan.CauseNone {
			continue
		}
		if count[k]++; count[k] == 1 {
			example[k] = v
		}
	}
	stay := slices.SortedFunc(maps.Keys(count), func(a, b kind) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.reason, b.reason), cmp.Compare(a.cause, b.cause))
	})
	for _, reason := range plan.DisruptionReasons() {
		if going[reason] > 0 {
			fmt.Fprintf(&note, "- %s: %s to go\n", reason, counted(going[reason], "node", "nodes"))
		}
	}
	for i, k := range stay {
		if i == maxNote {
			fmt.Fprintf(&note, "- and %d more kinds\n", len(stay)-maxNote)
			break
		}
		fmt.Fprintf(&note, "- %s: %s to stay (%s), such as %s: %s\n", k.reason, counted(count[k], "node", "nodes"), k.cause, example[k].Node, shortened(example[k].Message))
	}
	return note.String()
}
