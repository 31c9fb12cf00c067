package workflows

import (
	"testing"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestWhatGoesFirst checks the order of tasks on a busy task queue: interruptions, pending pods, people's orders, and
// removals that can wait.
func TestWhatGoesFirst(t *testing.T) {
	t.Parallel()
	drain := func(reason string) Start { return DrainOptions(DrainInput{Cluster: "c", Node: "n", Reason: reason}) }
	replacement := func(reason string) Start {
		return ReplacementOptions(ReplacementInput{Cluster: "c", ReplacementCommand: ReplacementCommand{Reason: reason, Nodes: []RemovedNode{{}}}})
	}
	order := []struct {
		reason string
		starts []Start
	}{
		{"nodes that the cloud takes away", []Start{drain(ReasonSpotInterrupted), drain(ReasonReservationInterrupted), drain(ReasonCapacityBlockEnding), drain(ReasonInstanceStopping), drain(ReasonInstanceTerminated)}},
		{"pods that wait for a node", []Start{ProvisioningOptions("c"), LaunchOptions("c", LaunchGroup{}), NodeClaimOptions(NodeClaimInput{Cluster: "c"})}},
		{"what somebody has ordered", []Start{drain(ReasonManualDrain), drain(ReasonClaimDeleted), drain(ReasonNodeDeleted), replacement(ReasonManualReplacement)}},
		{"what could as well go later", []Start{DisruptionOptions("c"), replacement(string(karpv1.DisruptionReasonDrifted)),
			drain(ReasonEmpty), drain(ReasonExpired), drain(string(karpv1.DisruptionReasonDrifted)), drain(string(karpv1.DisruptionReasonUnderutilized))}},
	}
	for i, rank := range order {
		for _, start := range rank.starts {
			if got := start.Client().Priority.PriorityKey; got != i+1 {
				t.Errorf("%s: %s has the priority %d, want %d", rank.reason, start.ID, got, i+1)
			}
		}
	}
}
