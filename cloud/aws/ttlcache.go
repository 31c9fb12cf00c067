package aws

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

// ttlCache remembers at most so many values, each for a while. When it is full, the one that was not asked for the longest
// makes room.
type ttlCache[K comparable, V any] struct {
	ttl    time.Duration
	values *cache.LRUExpireCache
}

func newTTLCache[K comparable, V any](ttl time.Duration, size int, now func() time.Time) *ttlCache[K, V] {
	return &ttlCache[K, V]{ttl: ttl, values: cache.NewLRUExpireCacheWithClock(size, nowFunc(now))}
}

func (c *ttlCache[K, V]) get(key K) (V, bool) {
	found, ok := c.values.Get(key)
	value, _ := found.(V) // nothing is not found
	return value, ok
}

func (c *ttlCache[K, V]) put(key K, value V) { c.putFor(key, value, c.ttl) }

func (c *ttlCache[K, V]) putFor(key K, value V, ttl time.Duration) { c.values.Add(key, value, ttl) }

func (c *ttlCache[K, V]) remove(key K) { c.values.Remove(key) }

// nowFunc is a clock.
type nowFunc func() time.Time

func (n nowFunc) Now() time.Time { return n() }
