package plan

import (
	"cmp"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// emptied takes away the nodes that run nothing which would have to move, one command for each pool. A node whose free
// room a buffer needs is not empty.
func (d *decision) emptied() {
	reason := karpv1.DisruptionReasonEmpty
	candidates := d.open(reason)
	// The youngest go last: of equally empty nodes they have the most life before them.
	slices.SortFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(strings.Compare(a.node.Pool, b.node.Pool), a.node.Created.Compare(b.node.Created), strings.Compare(a.node.Key(), b.node.Key()))
	})
	empty := make([]*Node, len(candidates))
	for i, c := range candidates {
		empty[i] = c.node
	}
	kept := KeptForHeadroom(d.in.Snapshot, empty)
	commands := map[string]*Command{}
	for _, c := range candidates {
		n := c.node
		if pod := kept[n.Key()]; pod != nil {
			d.verdict(n, reason, CauseBuffer, "it keeps room free for "+pod.Key())
			continue
		}
		if d.book.left(n.Pool, reason) == 0 {
			d.refuse(c, reason)
			continue
		}
		d.book.take(n.Pool, reason, 1)
		command := commands[n.Pool]
		if command == nil {
			command = &Command{Reason: reason, Why: "nothing runs on them that would have to move"}
			commands[n.Pool] = command
		}
		command.Nodes = append(command.Nodes, n.Key())
		command.SavesPerHour += c.price
	}
	for _, pool := range sortedKeys(commands) {
		d.command(*commands[pool])
	}
}
