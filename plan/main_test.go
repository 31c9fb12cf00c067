package plan_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes the random inputs of this package the same in every run, so that a change is judged by itself, and few
// enough for every run. For more, and others: make fuzz
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.seed": "20261121", "rapid.checks": "40"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	debug.SetGCPercent(400) // solvers make much garbage and keep little: a fifth of the processor time
	os.Exit(m.Run())
}
