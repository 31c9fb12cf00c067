package architecture

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// limits are the maximum figures of a package.
type limits struct {
	// methods is the maximum number of methods of a type: a type that needs more is several things.
	methods int
	// back is the share of arrows between files of a package, in percent, that may run against its reading order.
	back int
	// function is the maximum number of lines of a function.
	function int
}

// house applies to every package, and planned to the planner's.
var (
	house   = limits{methods: 40, back: 15, function: 110}
	planned = limits{methods: 25, back: 10, function: 70}
)

// TestPackagesKeepTheirLimits checks every package against the limits.
func TestPackagesKeepTheirLimits(t *testing.T) {
	t.Parallel()
	for _, source := range sourcesOf(t, "") {
		name := strings.TrimPrefix(source.Path, Module+"/")
		allowed := house
		if within(name, "plan") {
			allowed = planned
		}
		m := source.Measure()
		if m.Methods > allowed.methods {
			t.Errorf("%s.%s has %d methods, more than %d", name, m.Widest, m.Methods, allowed.methods)
		}
		if len(m.Undocumented) > 0 {
			t.Errorf("%s has exported names without a comment: %s", name, strings.Join(m.Undocumented, ", "))
		}
		if m.LongestFunc > allowed.function {
			t.Errorf("%s.%s has %d lines, more than %d", name, m.Longest, m.LongestFunc, allowed.function)
		}
		if m.BackShare() > allowed.back {
			arrows := source.arrows()
			order := source.readingOrder(arrows)
			better := bestOrder(arrows, order)
			t.Errorf("%s: %d of %d arrows run against the reading order:\n\t%s\na better order: %s\nagainst which run\n\t%s", name, m.Back, m.Arrows,
				strings.Join(against(arrows, order), "\n\t"), strings.ReplaceAll(strings.Join(better, " "), ".go", ""), strings.Join(against(arrows, better), "\n\t"))
		}
	}
}

// TestReadingOrdersNameEveryFile checks that a package comment that states an order names all files, and that all the
// planner's packages state one.
func TestReadingOrdersNameEveryFile(t *testing.T) {
	t.Parallel()
	for _, source := range sourcesOf(t, "") {
		order, names := source.declaredOrder(), source.names()
		if order == nil && (!within(source.Path, planner) || len(names) < 2) {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(order, n) })
		gone := slices.DeleteFunc(slices.Clone(order), func(n string) bool { return slices.Contains(names, n) })
		if len(missing)+len(gone) > 0 {
			t.Errorf("%s: its comment's \"Reading order:\" misses %v and names %v, which are not there", source.Path, missing, gone)
		}
	}
}

// allSources returns this module's packages. They are read once for all tests, since that takes some seconds. The tests run
// in their own directory, two levels below the module's.
var allSources = sync.OnceValues(func() ([]*Source, error) { return Sources(filepath.Join("..", ".."), "./...") })

// sourcesOf returns the packages of a tree; "" is the whole module.
func sourcesOf(t *testing.T, tree string) []*Source {
	t.Helper()
	touchSources(t, moduleRoot(t))
	all, err := allSources()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *Source) bool { return tree != "" && !within(s.Path, Module+"/"+tree) })
}
