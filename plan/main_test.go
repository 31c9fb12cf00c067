package plan_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes the random inputs of this package the same in every run, so that a change is judged by itself. To draw
// others: go test ./plan -rapid.seed=0 -rapid.checks=1000
func TestMain(m *testing.M) {
	flag.Parse()
	drawn := false
	flag.Visit(func(f *flag.Flag) { drawn = drawn || f.Name == "rapid.seed" })
	if !drawn {
		if err := flag.Set("rapid.seed", "20261121"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	debug.SetGCPercent(400) // solvers make much garbage and keep little: a fifth of the processor time
	os.Exit(m.Run())
}
