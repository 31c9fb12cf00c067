package plan

import (
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Disrupt finds everything that may be taken away now: the nodes static pools have too many of, and those that are empty.
func Disrupt(snapshot *Snapshot) Disruption {
	found := Emptiness(snapshot)
	surplus := Overprovision(snapshot)
	going := map[string]bool{}
	for _, command := range surplus {
		for _, node := range command.Nodes {
			going[node] = true
		}
	}
	found.Verdicts = slices.DeleteFunc(found.Verdicts, func(v Verdict) bool { return going[v.Node] })
	found.Commands = slices.Concat(surplus, found.Commands)
	return found
}

// OnlyWhileEmpty says that a reason lets nodes go only while nothing runs on them that would have to move.
func OnlyWhileEmpty(reason karpv1.DisruptionReason) bool {
	return reason == karpv1.DisruptionReasonEmpty
}
