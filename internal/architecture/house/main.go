// Command house prints the figures of every package of this module: files, lines, the widest type, the share of arrows
// between files that run against the reading order, exported and undocumented names, and lengths of functions. The tests of
// internal/architecture enforce the limits.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/tenon-sh/tenon/internal/architecture"
)

func main() {
	order := flag.Bool("order", false, "print the order against which the fewest arrows run, for the package's comment")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "house prints the figures of packages of this module.\n\nUsage: house [-order] [PATTERN...]\n\nExample: go run ./internal/architecture/house ./activities ./plan/...")
		flag.PrintDefaults()
	}
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := show(patterns, *order); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func show(patterns []string, order bool) error {
	sources, err := architecture.Sources(".", patterns...)
	if err != nil {
		return err
	}
	if order {
		for _, source := range sources {
			fmt.Printf("%s: %s.\n", strings.TrimPrefix(source.Path, architecture.Module+"/"), strings.Join(source.BestOrder(), ", "))
		}
		return nil
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PACKAGE\tFILES\tLINES\tWIDEST TYPE\tMETHODS\tARROWS\tBACK\tEXPORTED\tUNDOCUMENTED\tMEDIAN FUNC\tLONGEST FUNC")
	for _, source := range sources {
		m := source.Measure()
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%d\t%d\t%d%%\t%d\t%d\t%d\t%d %s\n", strings.TrimPrefix(source.Path, architecture.Module+"/"),
			m.Files, m.Lines, m.Widest, m.Methods, m.Arrows, m.BackShare(), m.Exported, len(m.Undocumented), m.MedianFunc, m.LongestFunc, m.Longest)
	}
	return table.Flush()
}
