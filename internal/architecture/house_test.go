package architecture

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// limits are what a package may measure at most.
type limits struct {
	// methods is how many methods a type has at most: what needs more is several things.
	methods int
	// back is the share of arrows between files of a package, in percent, that may run against its reading order.
	back int
	// undocumented is how many exported names may be without a comment.
	undocumented int
	// function is how many lines a function may have.
	function int
}

// house is what holds for every package, and planned what holds for the planner's. Few arrows are a bad sample: a share of
// them counts only from enoughArrows on.
var (
	house        = limits{methods: 40, back: 15, undocumented: 1, function: 110}
	planned      = limits{methods: 25, back: 10, undocumented: 1, function: 70}
	enoughArrows = 10
)

// TestPackagesKeepTheirLimits holds every package but the tests' and the generated ones to the limits of the house.
func TestPackagesKeepTheirLimits(t *testing.T) {
	t.Parallel()
	for _, source := range sourcesOf(t, "") {
		name := strings.TrimPrefix(source.Path, Module+"/")
		if within(name, "test") || within(name, "bench") || within(name, "api") {
			continue
		}
		allowed := house
		if within(name, "plan") {
			allowed = planned
		}
		m := source.Measure()
		if m.Methods > allowed.methods {
			t.Errorf("%s.%s has %d methods, more than %d", name, m.Widest, m.Methods, allowed.methods)
		}
		if m.Undocumented > allowed.undocumented {
			t.Errorf("%s has %d exported names without a comment", name, m.Undocumented)
		}
		if m.LongestFunc > allowed.function {
			t.Errorf("%s.%s has %d lines, more than %d", name, m.Longest, m.LongestFunc, allowed.function)
		}
		if m.Arrows >= enoughArrows && m.BackShare() > allowed.back {
			arrows := source.arrows()
			order := source.readingOrder(arrows)
			better := bestOrder(arrows, order)
			t.Errorf("%s: %d of %d arrows run against the reading order:\n\t%s\na better order: %s\nagainst which run\n\t%s", name, m.Back, m.Arrows,
				strings.Join(against(arrows, order), "\n\t"), strings.ReplaceAll(strings.Join(better, " "), ".go", ""), strings.Join(against(arrows, better), "\n\t"))
		}
	}
}

// TestReadingOrdersNameEveryFile holds that a package comment which tells an order tells it of all files, and that the planner's
// all do.
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

// allSources are this module's packages, read once for all tests: that takes some seconds. The tests run in their own directory,
// two below the module's.
var allSources = sync.OnceValues(func() ([]*Source, error) { return Sources(filepath.Join("..", ".."), "./...") })

// sourcesOf are the packages of a tree; "" is the whole module.
func sourcesOf(t *testing.T, tree string) []*Source {
	t.Helper()
	touchSources(t, moduleRoot(t))
	all, err := allSources()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *Source) bool { return tree != "" && !within(s.Path, Module+"/"+tree) })
}
