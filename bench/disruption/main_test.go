package main

import (
	"path/filepath"
	"testing"
)

// TestRowsReplaceEachOther checks that the file has one row of each name, in the order of the measurements.
func TestRowsReplaceEachOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out", "rows.json")
	for _, row := range []any{
		dayRow{Name: "day", TenonPodsMoved: 1}, evaluated{Name: "evaluation-1000", Nodes: 1000}, dayRow{Name: "day", TenonPodsMoved: 2},
	} {
		if err := keep(path, row); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || nameOf(rows[0]) != "evaluation-1000" || nameOf(rows[1]) != "day" {
		t.Fatalf("rows are %s, want evaluation-1000 and day", rows)
	}
	if err := showAs(rows[1], func(r dayRow) {
		if r.TenonPodsMoved != 2 {
			t.Errorf("the later row is not the one that stays: %+v", r)
		}
	}); err != nil {
		t.Error(err)
	}
	if err := show(path); err != nil {
		t.Error(err)
	}
}
