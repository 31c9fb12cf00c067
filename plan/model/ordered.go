package model

// ReplacementOrder is a person's order to replace nodes.
type ReplacementOrder struct {
	// Nodes are Keys of Nodes.
	Nodes []string
	// Launch has new nodes launched for all pods that move, even if they fit on nodes that exist.
	Launch bool
	// Grounds says who has ordered it and why, as part of a sentence.
	Grounds string
}

// OrderedReplacements says how nodes are replaced that a person has ordered to be replaced.
type OrderedReplacements struct {
	// Commands replace one node each.
	Commands []Command
	// Kept are the nodes that cannot be replaced now, and why.
	Kept []Verdict
	// Despite says of the other nodes what would have kept them if nobody had ordered it, and what will hold up their drains.
	Despite []Verdict
}
