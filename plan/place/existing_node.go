package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// ExistingNode is a node that exists or is on its way, with what is free on it.
type ExistingNode struct {
	Node  *model.Node
	Free  []int64
	Ports []model.HostPort
	// Attach is how many volumes the node can still attach.
	Attach *rules.AttachmentRoom
	// options are the machines a claim without one may still become; nil once it is launched.
	options market.Bitset
	zones   uint64
	// Tally counts the pods of the groups over hostnames, which topology knows.
	Tally    []int32
	topology *rules.Topology
	// Closed says that nothing is to be put on it for the time being.
	Closed bool
}

// nodeRow is existing nodes in the order in which they are filled.
type nodeRow []*ExistingNode

// Next is the place of the first existing node from a place on that has room for a request, or the number of existing
// nodes if there is none. Only resources are looked at.
func (r nodeRow) Next(from int, request []int64) int {
	for from < len(r) && (r[from].Closed || !solve.Fits(request, r[from].Free)) {
		from++
	}
	return from
}
