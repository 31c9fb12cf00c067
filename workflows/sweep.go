package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// SweepInput starts a Sweep.
type SweepInput struct {
	Cluster Cluster `json:"cluster"`
}

// SweepResult counts what a Sweep has put right; all zero in a cluster where nothing ever goes wrong.
type SweepResult struct {
	Instances int `json:"instances"`
	Claims    int `json:"claims"`
	// Terminated are instances nobody owned.
	Terminated []string `json:"terminated,omitempty"`
	// Adopted are claims that had no workflow.
	Adopted []string `json:"adopted,omitempty"`
	// Lost are claims whose instance is gone.
	Lost []string `json:"lost,omitempty"`
	// Nodes are Node objects without instance and claim that were let go.
	Nodes []string `json:"nodes,omitempty"`
	// Unmarked are Nodes that were marked as going and nobody takes away.
	Unmarked []string `json:"unmarked,omitempty"`
	// Dropped are claims of replacements that are over, which were never launched.
	Dropped []string `json:"dropped,omitempty"`
	// Ended are workflows that were told that their NodeClaim or Node is gone.
	Ended []string `json:"ended,omitempty"`
	// Failed says of some objects why they could not be put right, and Failures counts all of them.
	Failed   []string `json:"failed,omitempty"`
	Failures int      `json:"failures,omitempty"`
	// Stuck are workflows that do not go on, with what Temporal says of that; their code may not fit their history.
	Stuck []string `json:"stuck,omitempty"`
	// Withheld counts nodes that were left for the next sweep, since one may end only so many.
	Withheld int `json:"withheld,omitempty"`
	// Stopped says why no node was ended at all; empty where all is well.
	Stopped string `json:"stopped,omitempty"`
}

// Sweep compares cloud, cluster and workflows once, and puts right what a bug or a person has left behind. A Schedule
// starts it every SweepNet, and whoever leads every SweepInterval while anything that it compares changes.
func Sweep(ctx workflow.Context, in SweepInput) (SweepResult, error) {
	result, err := SweepActivity.Run(ctx, in, "compare cloud, cluster and workflows")
	if err != nil {
		return result, err
	}
	details := fmt.Sprintf("%d instances and %d claims compared: %d instances terminated, %d claims adopted, %d claims lost, %d nodes let go, %d nodes unmarked, %d claims dropped, %d workflows ended, %d nodes left for the next sweep, %d failures.",
		result.Instances, result.Claims, len(result.Terminated), len(result.Adopted), len(result.Lost), len(result.Nodes), len(result.Unmarked), len(result.Dropped),
		len(result.Ended), result.Withheld, result.Failures)
	if result.Stopped != "" {
		details += "\n\n**Stopped**: " + result.Stopped + "."
	}
	for _, failed := range result.Failed {
		details += "\n\n- " + failed
	}
	for _, stuck := range result.Stuck {
		details += "\n\n- does not go on: " + stuck
	}
	workflow.SetCurrentDetails(ctx, details)
	return result, nil
}
