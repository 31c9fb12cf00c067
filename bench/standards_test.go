package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// Every row that misses a figure is named, with that figure.
func TestJudge(t *testing.T) {
	t.Parallel()
	good := figure{Name: "good", Bound: 1, Tenon: made{Cost: 1.05}, NotNominated: made{Cost: 1.06}, FirstFit: 1.2, OneType: 1.3}
	for _, test := range []struct {
		reason string
		change func(f *figure)
		want   string
	}{
		{reason: "all is well", change: func(*figure) {}},
		{reason: "above the bound", change: func(f *figure) { f.Tenon.Cost = 1.16 }, want: "the plan costs 1.160 times the bound"},
		{reason: "above the bound without nomination", change: func(f *figure) { f.NotNominated.Cost = 1.16 }, want: "without nomination costs 1.160 times the bound"},
		{reason: "above the mean", change: func(f *figure) { f.Tenon.Cost = 1.1 }, want: "1.100 times the bound on average over 1 rows"},
		{reason: "above the price by hand", change: func(f *figure) { f.FirstFit = 1.01 }, want: "times what it costs by hand"},
		{reason: "above one type", change: func(f *figure) { f.OneType = 1.01 }, want: "times what it costs by hand"},
		{reason: "dearer near a limit", change: func(f *figure) { f.Unlimited = 0.9 }, want: "times what it costs without limits"},
		{reason: "pods are left", change: func(f *figure) { f.Tenon.Unplaced = 1 }, want: "the plan leaves 1 pods"},
		{reason: "pods are left by intent", change: func(f *figure) { f.Tenon.Unplaced, f.NotNominated.Unplaced, f.Impossible = 1, 1, true }},
		{reason: "a bound that is none", change: func(f *figure) { f.Bound = 1.1 }, want: "the bound is $1.1000/h"},
		{reason: "Karpenter places more", change: func(f *figure) { f.Impossible, f.Tenon.Unplaced, f.Karpenter = true, 1, &made{} }, want: "and Karpenter 0"},
		{reason: "slow", change: func(f *figure) { f.Name, f.Tenon.Seconds = "distinct-5000-spot", 1.5 }, want: "planning takes 1.50 s, want at most 1"},
		{reason: "large", change: func(f *figure) { f.Name, f.PeakMiB = "distinct-10000-spot", 200 }, want: "planning takes 200 MiB, want at most 150"},
		{reason: "slow with many nodes", change: func(f *figure) { f.Name, f.Tenon.Seconds = "10000-nodes-500-spot", 0.6 }, want: "planning takes 0.60 s, want at most 0.5"},
	} {
		f := good
		test.change(&f)
		err := judge([]figure{f})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.want)
		}
	}
}

// The README's table begins with the row that flatters least.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "planner.json")
	if err := write([]figure{
		{Name: "flattering", Capacity: "spot", Tenon: made{Cost: 1, Nodes: 2}, FirstFit: 2, FirstFitNodes: 1},
		{Name: "sobering", Capacity: "spot", Tenon: made{Cost: 1, Nodes: 2}, Karpenter: &made{Cost: 1, Nodes: 1}, FirstFit: 2, FirstFitNodes: 1},
	}, path); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := markdown(&b, "", path); err != nil {
		t.Fatal(err)
	}
	if first, second := strings.Index(b.String(), "sobering"), strings.Index(b.String(), "flattering"); first < 0 || second < first {
		t.Errorf("the tables are\n%s", b.String())
	}
	if err := markdown(io.Discard, "(", path); err == nil {
		t.Error("a broken pattern is taken")
	}
}
