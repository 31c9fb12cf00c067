package ec2sim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// compactAbove is the size in bytes below which a journal is never rewritten.
const compactAbove = 4 << 20

// journal stores the simulator's state in a file of JSON lines. Each line is one transaction: the complete rows it
// changed. A line is written with one write call before its request is answered, so everything acknowledged survives a
// SIGKILL. An incomplete last line belongs to a request that was never answered, and is dropped at the next start. When
// the file has grown to several times its live content, it is replaced, by rename, with one line per row. The file is not
// synced to the disk: a lab does not have to survive a power failure.
type journal struct {
	path   string // empty: nothing is stored
	file   *os.File
	size   int64
	floor  int64 // size after the last compaction
	tables map[string]anyTable
	dirty  []journalKey
	marked map[journalKey]bool
}

// journalEntry is one changed row; no value means the row was deleted.
type journalEntry struct {
	Table string          `json:"t"`
	ID    string          `json:"id"`
	Value json.RawMessage `json:"v,omitempty"`
}

type journalKey struct{ table, id string }

// anyTable is the part of a table that the journal needs.
type anyTable interface {
	load(entry journalEntry) error
	encode(id string) (json.RawMessage, error) // nil when there is no such row
	ids() []string
	clear()
}

// table is a set of rows by id. Its changes are written to the journal.
type table[T any] struct {
	name    string
	journal *journal
	rows    map[string]*T
}

func newTable[T any](j *journal, name string) *table[T] {
	t := &table[T]{name: name, journal: j, rows: map[string]*T{}}
	j.tables[name] = t
	return t
}

// put adds or replaces a row, or marks a row that was changed in place.
func (t *table[T]) put(id string, row *T) {
	t.rows[id] = row
	t.journal.mark(t.name, id)
}

func (t *table[T]) del(id string) {
	delete(t.rows, id)
	t.journal.mark(t.name, id)
}

func (t *table[T]) clear() {
	for id := range t.rows {
		t.del(id)
	}
}

// sorted returns the rows, ordered by id.
func (t *table[T]) sorted() []*T {
	rows := make([]*T, 0, len(t.rows))
	for _, id := range t.ids() {
		rows = append(rows, t.rows[id])
	}
	return rows
}

func (t *table[T]) ids() []string { return slices.Sorted(maps.Keys(t.rows)) }

func (t *table[T]) load(entry journalEntry) error {
	if entry.Value == nil {
		delete(t.rows, entry.ID)
		return nil
	}
	row := new(T)
	if err := json.Unmarshal(entry.Value, row); err != nil {
		return fmt.Errorf("%s %s: %w", t.name, entry.ID, err)
	}
	t.rows[entry.ID] = row
	return nil
}

func (t *table[T]) encode(id string) (json.RawMessage, error) {
	row, ok := t.rows[id]
	if !ok {
		return nil, nil
	}
	return json.Marshal(row)
}

func newJournal(path string) *journal {
	return &journal{path: path, tables: map[string]anyTable{}, marked: map[journalKey]bool{}}
}

func (j *journal) mark(table, id string) {
	key := journalKey{table, id}
	if !j.marked[key] {
		j.marked[key] = true
		j.dirty = append(j.dirty, key)
	}
}

// open loads the file into the tables, which must all exist by now, and prepares it for appending.
func (j *journal) open() error {
	if j.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(j.path), 0o755); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	data, err := os.ReadFile(j.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read state: %w", err)
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if err := j.replay(data[:whole]); err != nil {
		return fmt.Errorf("read state %s: %w", j.path, err)
	}
	j.file, err = os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	if err := j.file.Truncate(int64(whole)); err != nil {
		return fmt.Errorf("drop torn end of state: %w", err)
	}
	if _, err := j.file.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	j.size, j.floor = int64(whole), int64(whole)
	return nil
}

// clear deletes every row of every table.
func (j *journal) clear() {
	for _, t := range j.tables {
		t.clear()
	}
}

func (j *journal) replay(data []byte) error {
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		var entries []journalEntry
		if err := json.Unmarshal(line, &entries); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		for _, entry := range entries {
			t := j.tables[entry.Table]
			if t == nil {
				return fmt.Errorf("line %d: unknown table %q", n, entry.Table)
			}
			if err := t.load(entry); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	return nil
}

// commit writes everything marked since the last commit as one line.
func (j *journal) commit() error {
	dirty := j.dirty
	j.dirty = nil
	clear(j.marked)
	if j.file == nil || len(dirty) == 0 {
		return nil
	}
	entries := make([]journalEntry, len(dirty))
	for i, key := range dirty {
		value, err := j.tables[key.table].encode(key.id)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", key.table, key.id, err)
		}
		entries[i] = journalEntry{Table: key.table, ID: key.id, Value: value}
	}
	line, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	j.size += int64(len(line)) + 1
	if j.size > compactAbove && j.size > 4*j.floor {
		return j.compact()
	}
	return nil
}

// compact replaces the file with its live rows.
func (j *journal) compact() error {
	next, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+".*")
	if err != nil {
		return fmt.Errorf("compact state: %w", err)
	}
	if err = j.dump(next); err == nil {
		err = os.Rename(next.Name(), j.path)
	}
	if err != nil {
		return fmt.Errorf("compact state: %w", errors.Join(err, next.Close(), os.Remove(next.Name())))
	}
	size, err := next.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("compact state: %w", err)
	}
	old := j.file
	j.file, j.size, j.floor = next, size, size
	if err := old.Close(); err != nil {
		return fmt.Errorf("close old state: %w", err)
	}
	return nil
}

func (j *journal) dump(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	names := slices.SortedFunc(maps.Keys(j.tables), cmp.Compare)
	for _, name := range names {
		for _, id := range j.tables[name].ids() {
			value, err := j.tables[name].encode(id)
			if err != nil {
				return err
			}
			line, err := json.Marshal([]journalEntry{{Table: name, ID: id, Value: value}})
			if err != nil {
				return err
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file = nil
	return file.Close()
}
