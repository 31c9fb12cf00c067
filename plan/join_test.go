package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func TestCommandsAreJoined(t *testing.T) {
	t.Parallel()
	single := func(node string, reason karpv1.DisruptionReason) plan.Command {
		return plan.Command{Reason: reason, Nodes: []string{node}, Moves: 2, SavesPerHour: 0.25, Why: node + " fits elsewhere"}
	}
	launching := single("d", drifted)
	launching.Replacements = []plan.Claim{{}}
	pair := single("e", drifted)
	pair.Nodes = []string{"e", "f"}
	var many []plan.Command
	var hundred []string
	for i := range 101 {
		many = append(many, single(fmt.Sprint("n", i), drifted))
		hundred = append(hundred, fmt.Sprint("n", i))
	}
	hundred = hundred[:100]
	for _, test := range []struct {
		reason   string
		commands []plan.Command
		alone    string
		// want is the nodes of each command, independent those of the independent ones.
		want        [][]string
		independent [][]string
	}{
		{reason: "nothing stays nothing"},
		{reason: "a single node is independent by itself", commands: []plan.Command{single("a", drifted)}, want: [][]string{{"a"}}, independent: [][]string{{"a"}}},
		{reason: "single nodes of one reason go together", commands: []plan.Command{single("a", drifted), single("b", drifted)},
			want: [][]string{{"a", "b"}}, independent: [][]string{{"a", "b"}}},
		{reason: "each reason by itself, in the order of its first node", commands: []plan.Command{single("a", drifted), single("b", underutilized), single("c", drifted)},
			want: [][]string{{"a", "c"}, {"b"}}, independent: [][]string{{"a", "c"}, {"b"}}},
		{reason: "a launch is not combined", commands: []plan.Command{single("a", drifted), launching, single("b", drifted)},
			want: [][]string{{"a", "b"}, {"d"}}, independent: [][]string{{"a", "b"}}},
		{reason: "nodes that the planner removes together may only go together", commands: []plan.Command{pair, single("a", drifted)},
			want: [][]string{{"e", "f"}, {"a"}}, independent: [][]string{{"a"}}},
		{reason: "who has to be alone is alone", commands: []plan.Command{single("a", drifted), single("b", drifted), single("c", drifted)}, alone: "b",
			want: [][]string{{"a", "c"}, {"b"}}, independent: [][]string{{"a", "c"}}},
		{reason: "people can follow a hundred at once", commands: many, want: [][]string{hundred, {"n100"}}, independent: [][]string{hundred, {"n100"}}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			var nodes, independent [][]string
			for _, command := range plan.Join(test.commands, func(c plan.Command) bool { return slices.Contains(c.Nodes, test.alone) }) {
				nodes = append(nodes, command.Nodes)
				if command.Independent {
					independent = append(independent, command.Nodes)
				}
			}
			if diff := cmp.Diff(test.want, nodes); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.independent, independent); diff != "" {
				t.Errorf("independent (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJoiningLosesNothing joins drawn commands: every node is in one command with its own grounds, and pods and savings add up.
func TestJoiningLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var commands []plan.Command
		why, moves := map[string]string{}, 0
		for i := range rapid.IntRange(0, 300).Draw(t, "commands") {
			command := plan.Command{Reason: rapid.SampledFrom([]karpv1.DisruptionReason{drifted, underutilized}).Draw(t, "reason"), Moves: i, Why: fmt.Sprint("why ", i)}
			for n := range rapid.IntRange(1, 2).Draw(t, "nodes") {
				node := fmt.Sprint(i, ".", n)
				command.Nodes, why[node] = append(command.Nodes, node), command.Why
			}
			commands, moves = append(commands, command), moves+i
		}
		for _, command := range plan.Join(commands, func(plan.Command) bool { return false }) {
			moves -= command.Moves
			for i, node := range command.Nodes {
				grounds := command.Why
				if command.Independent {
					grounds = command.Whys[i]
				}
				if why[node] == "" || why[node] != grounds {
					t.Fatalf("node %s: %q, want %q", node, grounds, why[node])
				}
				delete(why, node)
			}
		}
		if len(why) > 0 || moves != 0 {
			t.Fatalf("lost %v and %d moves", why, moves)
		}
	})
}
