package workflows

import "time"

// SweepInput starts a Sweep.
type SweepInput struct {
	Cluster Cluster `json:"cluster"`
	// Leftovers is what the last sweep knew of leftovers; nil if that is not known. The workflow fills it in.
	Leftovers *Leftovers `json:"leftovers,omitempty"`
}

// Leftovers is what sweeps know of launch templates and instance profiles that nothing uses.
type Leftovers struct {
	// Asked is when the cloud was last asked for them.
	Asked time.Time `json:"asked"`
	// Known are those of its last answer, the first found first.
	Known []KnownLeftover `json:"known,omitempty"`
}

// KnownLeftover is one of them.
type KnownLeftover struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Since is when the cloud first named it, and has in every answer since then.
	Since time.Time `json:"since"`
	// Tried says that its removal was tried since the last answer.
	Tried bool `json:"tried,omitempty"`
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
	// Unasked are claims that were marked as waiting for an approval for which no workflow waited.
	Unasked []string `json:"unasked,omitempty"`
	// Dropped are claims that were never launched, of replacements that are over.
	Dropped []string `json:"dropped,omitempty"`
	// Relabelled are claims whose instance has left its capacity reservation, or was moved into one.
	Relabelled []string `json:"relabelled,omitempty"`
	// Ended are workflows that were told that their NodeClaim or Node is gone.
	Ended []string `json:"ended,omitempty"`
	// Collected are launch templates and instance profiles that nothing used.
	Collected []string `json:"collected,omitempty"`
	// Leftovers is what the next sweep has to know of leftovers.
	Leftovers *Leftovers `json:"leftovers,omitempty"`
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
