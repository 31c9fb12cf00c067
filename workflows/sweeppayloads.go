package workflows

// SweepInput starts a Sweep.
type SweepInput struct {
	Cluster Cluster `json:"cluster"`
}

// SweepResult says what a Sweep compared and put right. In a cluster where nothing goes wrong, only Instances and Claims are
// not zero.
type SweepResult struct {
	Instances int `json:"instances"`
	Claims    int `json:"claims"`
	// Terminated are instances that nobody owned.
	Terminated []string `json:"terminated,omitempty"`
	// Adopted are claims that had no workflow.
	Adopted []string `json:"adopted,omitempty"`
	// Lost are claims whose instance is gone.
	Lost []string `json:"lost,omitempty"`
	// Nodes are deleted Node objects that had neither instance nor claim.
	Nodes []string `json:"nodes,omitempty"`
	// Unmarked are Nodes that were marked for removal but that nobody removes.
	Unmarked []string `json:"unmarked,omitempty"`
	// Dropped are claims that were never launched, of replacements that are over.
	Dropped []string `json:"dropped,omitempty"`
	// Relabelled are claims whose instance has left its capacity reservation, or was moved into one.
	Relabelled []string `json:"relabelled,omitempty"`
	// Ended are workflows that were told that their NodeClaim or Node is gone.
	Ended []string `json:"ended,omitempty"`
	// Collected are launch templates and instance profiles that nothing used.
	Collected []string `json:"collected,omitempty"`
	// Failed says for some objects why they could not be put right. Failures counts all of them.
	Failed   []string `json:"failed,omitempty"`
	Failures int      `json:"failures,omitempty"`
	// Stuck are workflows that make no progress, with what Temporal says about it; their code may not fit their history.
	Stuck []string `json:"stuck,omitempty"`
	// Withheld counts nodes that were left for the next sweep, since one sweep may end only so many.
	Withheld int `json:"withheld,omitempty"`
	// Stopped says why no node was ended at all; empty where all is well.
	Stopped string `json:"stopped,omitempty"`
}
