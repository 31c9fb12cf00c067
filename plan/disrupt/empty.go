package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// emptied takes away the nodes that run nothing which would have to move, one command for each pool. A node is needed
// all the same whose free room pods are about to take, those that wait or those of nodes that leave, or a buffer keeps.
func (d *decision) emptied() {
	reason := karpv1.DisruptionReasonEmpty
	candidates := d.open(reason)
	// The youngest go last: of equally empty nodes they have the most life before them.
	slices.SortFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(strings.Compare(a.node.Pool, b.node.Pool), a.node.Created.Compare(b.node.Created), strings.Compare(a.node.Key(), b.node.Key()))
	})
	asks, commands := d.roomMatters(), map[string]*model.Command{}
	for _, c := range candidates {
		n := c.node
		if d.book.left(n.Pool, reason) == 0 {
			d.refuse(c, reason)
			continue
		}
		if asks && !d.spare(c) {
			continue
		}
		d.book.take(n.Pool, reason, 1)
		command := commands[n.Pool]
		if command == nil {
			command = &model.Command{Reason: reason, Why: "nothing runs on them that would have to move"}
			commands[n.Pool] = command
		}
		command.Nodes = append(command.Nodes, n.Key())
		command.SavesPerHour += c.price
	}
	for _, pool := range model.SortedKeys(commands) {
		d.command(*commands[pool])
	}
}

// spare says whether nobody needs the room on an empty node.
func (d *decision) spare(c *candidate) bool {
	f := d.simulationOf()
	if pod, expected := f.expects(c.node); expected {
		d.verdict(c.node, karpv1.DisruptionReasonEmpty, block{cause: model.CauseNominated, message: fmt.Sprintf("pod %s is to come to it", pod.Key())})
		return false
	}
	found, why, cause := f.Relocate([]*model.Node{c.node}, Purchase{})
	if found == nil {
		d.verdict(c.node, karpv1.DisruptionReasonEmpty, block{cause: cause, message: why})
		return false
	}
	return f.keep(found)
}
