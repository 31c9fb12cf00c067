package model

import (
	"runtime"
	"sync"
	"unique"
	"weak"
)

// Interner makes equal things one thing, so that ten thousand pods of forty shapes cost forty shapes. It belongs to the
// mirror that reduces API objects with it and is safe for concurrent use. It holds nothing alive: a shape is forgotten
// when the last pod of it is garbage. The zero Interner is empty.
type Interner struct {
	classes table[Class]
	labels  table[Labels]
}

// table finds a shared value by its key for as long as somebody else holds the value.
type table[T any] struct {
	mu      sync.Mutex
	entries map[string]weak.Pointer[T]
}

// get returns the one value for the key, building it where there is none. build receives the key as it will be kept.
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

// String returns a string equal to s that is shared with others, and never part of a larger one. The garbage collector may
// end the sharing with strings to come: that costs memory and nothing else.
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
