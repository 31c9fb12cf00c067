package aws

import (
	"sync"
	"time"
)

// ttlCache remembers at most size values, each for a while. When it is full, the entry that ends first makes room.
type ttlCache[K comparable, V any] struct {
	ttl  time.Duration
	size int
	now  func() time.Time

	mu      sync.Mutex
	entries map[K]ttlEntry[V]
}

type ttlEntry[V any] struct {
	value V
	ends  time.Time
}

func newTTLCache[K comparable, V any](ttl time.Duration, size int, now func() time.Time) *ttlCache[K, V] {
	return &ttlCache[K, V]{ttl: ttl, size: size, now: now, entries: make(map[K]ttlEntry[V])}
}

func (c *ttlCache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	if !ok || !c.now().Before(entry.ends) {
		delete(c.entries, key)
		var zero V
		return zero, false
	}
	return entry.value, true
}

func (c *ttlCache[K, V]) put(key K, value V) { c.putFor(key, value, c.ttl) }

func (c *ttlCache[K, V]) putFor(key K, value V, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; !ok && len(c.entries) >= c.size {
		c.evict()
	}
	c.entries[key] = ttlEntry[V]{value: value, ends: c.now().Add(ttl)}
}

func (c *ttlCache[K, V]) remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

func (c *ttlCache[K, V]) evict() {
	var first K
	var ends time.Time
	for key, entry := range c.entries {
		if ends.IsZero() || entry.ends.Before(ends) {
			first, ends = key, entry.ends
		}
	}
	delete(c.entries, first)
}
