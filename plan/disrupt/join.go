package disrupt

import (
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
)

// maxJoined limits how many nodes Join combines, so that people can still follow what happens to them.
const maxJoined = 100

// Join combines commands of one reason that each remove a single node and launch nothing. The pods of such nodes move at
// the same time, so that large pods get a place before small ones (see lifecycle.Drain), and one command is easier to follow
// than many. A combined command is Independent. Commands for which alone reports true stay as they are, and so does
// the order.
func Join(commands []model.Command, alone func(model.Command) bool) []model.Command {
	var joined []model.Command
	for _, command := range commands {
		if len(command.Replacements) > 0 || len(command.Nodes) > 1 || alone(command) {
			joined = append(joined, command)
			continue
		}
		at := slices.IndexFunc(joined, func(with model.Command) bool {
			return with.Independent && with.Reason == command.Reason && len(with.Nodes) < maxJoined
		})
		if at < 0 {
			command.Independent, command.Whys = true, []string{command.Why}
			joined = append(joined, command)
			continue
		}
		with := &joined[at]
		with.Nodes = append(slices.Clip(with.Nodes), command.Nodes...)
		with.Whys = append(with.Whys, command.Why)
		with.Moves += command.Moves
		with.SavesPerHour += command.SavesPerHour
		with.Why = fmt.Sprintf("the pods of each of %d nodes fit on other nodes", len(with.Nodes))
	}
	return joined
}
