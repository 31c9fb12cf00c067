package main

import (
	"strings"
	"testing"
)

func TestCommandsOfTheLaboratory(t *testing.T) {
	t.Parallel()
	for reason, args := range map[string][]string{
		"as it was":            {"demo"},
		"with its flags":       {"demo", "--pods", "500"},
		"with a sub-command":   {"dev", "stop", "--dir", "/tmp/lab"},
		"as somebody asks":     {"ec2sim", "--help"},
		"as help is asked for": {"dev", "-h"},
	} {
		root := newRootCommand()
		root.SetArgs(args)
		err := root.ExecuteContext(t.Context())
		if want := "`tenon-lab " + args[0] + "`"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: tenon %s: %v, want an error that names %s", reason, strings.Join(args, " "), err, want)
		}
	}
}
