package workflows

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
	// Stuck are workflows that are stuck, with what Temporal says of that; their code may not fit their history.
	Stuck []string `json:"stuck,omitempty"`
	// Withheld counts nodes that were left for the next sweep, since one may end only so many.
	Withheld int `json:"withheld,omitempty"`
	// Stopped says why no node was ended at all; empty where all is well.
	Stopped string `json:"stopped,omitempty"`
}
