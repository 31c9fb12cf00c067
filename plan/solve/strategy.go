package solve

// Strategy names a way to look for a lower price. Each can be left out, which shows what it is worth.
type Strategy string

// The strategies.
const (
	// ByWorth buys what the linear program wants, and then the machines that carry the most for their price.
	ByWorth Strategy = "by worth"
	// Search looks for loads of the linear program by branch and bound.
	Search Strategy = "search"
	// FirstFit opens machines one by one, and lets each become the cheapest that holds what was put on it.
	FirstFit Strategy = "first fit"
	// OneType is first fit into machines of one type alone.
	OneType Strategy = "one type"
	// Fleets buys machines of one type with the same mixture on each, some with part of their room kept free.
	Fleets Strategy = "fleets"
	// Rehearse compares ways to buy by what they cost once the kube-scheduler has placed the pods.
	Rehearse Strategy = "rehearse"
	// Shares buys again with no machine carrying more than its share, where that costs almost nothing.
	Shares Strategy = "shares"
	// Improve takes machines out of a packing and buys anew for what was on them.
	Improve Strategy = "improve"
)

// Strategies returns all strategies.
func Strategies() []Strategy {
	return []Strategy{ByWorth, Search, FirstFit, OneType, Fleets, Shares, Rehearse, Improve}
}
