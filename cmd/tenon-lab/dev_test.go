package main

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/lab"
)

func TestComponentsWithout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string // what the row shows
		names  []string
		absent []lab.Component
		fails  bool
	}{
		{name: "everything runs unless asked otherwise"},
		{name: "a worker can be run under a debugger", names: []string{"worker"}, absent: []lab.Component{lab.Worker}},
		{name: "several can be left out", names: []string{"worker", "ec2sim"}, absent: []lab.Component{lab.Worker, lab.EC2Sim}},
		{name: "a misspelt name is not ignored", names: []string{"wroker"}, fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := componentsWithout(test.names)
			if (err != nil) != test.fails {
				t.Fatalf("componentsWithout(%v): %v", test.names, err)
			}
			if test.fails {
				return
			}
			for _, c := range lab.All() {
				if wanted := !slices.Contains(test.absent, c); slices.Contains(got, c) != wanted {
					t.Errorf("%s runs: %t, want %t", c, !wanted, wanted)
				}
			}
		})
	}
}
