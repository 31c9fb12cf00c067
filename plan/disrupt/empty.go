package disrupt

import (
	"cmp"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// emptied removes the nodes that run no pods which would have to move, in one command for each pool. A node stays if a
// buffer keeps its free room, or if pods are about to take that room: pods that wait, or those of leaving nodes.
func (d *decision) emptied() {
	reason := karpv1.DisruptionReasonEmpty
	candidates := d.open(d.candidates[reason])
	// The youngest are removed last: of equally empty nodes they have the most life left.
	slices.SortFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(strings.Compare(a.node.Pool, b.node.Pool), a.node.Created.Compare(b.node.Created), strings.Compare(a.node.Key(), b.node.Key()))
	})
	going := map[string][]*candidate{}
	for _, c := range candidates {
		n := c.node
		kept := d.book.refusal(n.Pool, reason)
		if kept == nil {
			_, kept = d.simulationOf().Relocate([]*model.Node{n}, 0, nil)
		}
		if kept != nil {
			d.keep(n, reason, kept)
			continue
		}
		d.simulation.keep()
		d.book.take(n.Pool, reason, 1)
		going[n.Pool] = append(going[n.Pool], c)
	}
	for _, pool := range model.SortedKeys(going) {
		d.decide(reason, going[pool], nil, "")
	}
}
