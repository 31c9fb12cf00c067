package model

import (
	"runtime"
	"sync"
	"unique"
	"weak"
)

// Interner shares equal values, so that ten thousand pods of forty shapes cost forty shapes. It belongs to the mirror,
// which reduces API objects with it, and is safe for concurrent use. It keeps nothing alive: a shape is dropped when its
// last pod has been garbage collected. The zero Interner is empty.
type Interner struct {
	classes table[Class]
	labels  table[Labels]
	claims  table[PodClaims]
	limits  table[Resources]
}

// table finds a shared value by its key as long as something else references the value.
type table[T any] struct {
	mu      sync.Mutex
	entries map[string]weak.Pointer[T]
}

// get returns the value for the key, and builds it if there is none. build receives the copy of the key that the table
// keeps.
func (t *table[T]) get(key []byte, build func(key string) *T) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	if entry, ok := t.entries[string(key)]; ok {
		if value := entry.Value(); value != nil {
			return value
		}
	}
	owned := string(key)
	value := build(owned)
	if t.entries == nil {
		t.entries = map[string]weak.Pointer[T]{}
	}
	t.entries[owned] = weak.Make(value)
	runtime.AddCleanup(value, t.forget, owned)
	return value
}

// forget drops the key of a value that was collected, unless a new value has taken its place.
func (t *table[T]) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if entry, ok := t.entries[key]; ok && entry.Value() == nil {
		delete(t.entries, key)
	}
}

// String returns a string equal to s that is shared with others, and never part of a larger one. A garbage collection may
// keep later strings from sharing it, which only costs memory.
func (i *Interner) String(s string) string { return unique.Make(s).Value() }

// Labels returns a copy of labels whose strings are shared with others; nil for none.
func (i *Interner) Labels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	shared := make(map[string]string, len(labels))
	for key, value := range labels {
		shared[i.String(key)] = i.String(value)
	}
	return shared
}

// Size is the number of classes the interner knows.
func (i *Interner) Size() int {
	i.classes.mu.Lock()
	defer i.classes.mu.Unlock()
	return len(i.classes.entries)
}
