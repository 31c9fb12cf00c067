package ec2sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type note struct{ Text string }

// TestJournalReplaysWhatWasCommitted runs random transactions and checks the file after each, with frequent forced
// compaction.
func TestJournalReplaysWhatWasCommitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		j := newJournal(path)
		notes := newTable[note](j, "note")
		if err := j.open(); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(t, "transactions") {
			for range rapid.IntRange(1, 5).Draw(t, "changes") {
				id := rapid.StringMatching("[a-e]").Draw(t, "id")
				if rapid.Bool().Draw(t, "delete") {
					notes.del(id)
				} else {
					notes.put(id, &note{rapid.String().Draw(t, "text")})
				}
			}
			if err := j.commit(); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "compact") {
				if err := j.compact(); err != nil {
					t.Fatal(err)
				}
			}
			again := newJournal(path)
			read := newTable[note](again, "note")
			if err := again.open(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(notes.rows, read.rows); diff != "" {
				t.Fatalf("replayed (-want +got):\n%s", diff)
			}
			if err := again.close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestJournalCompactsItself(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	j := newJournal(path)
	notes := newTable[note](j, "note")
	if err := j.open(); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1<<16)
	for range 200 {
		notes.put("only", &note{text})
		if err := j.commit(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 2*compactAbove {
		t.Errorf("one row of %d bytes takes %d bytes after 200 changes", len(text), info.Size())
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}
