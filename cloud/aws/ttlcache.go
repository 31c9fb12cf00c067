package aws

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

// ttlCache holds a limited number of values, each for a limited time. When it is full, it drops the least recently used
// one.
type ttlCache[K comparable, V any] struct {
	ttl    time.Duration
	values *cache.LRUExpireCache
}

func newTTLCache[K comparable, V any](ttl time.Duration, size int, now func() time.Time) *ttlCache[K, V] {
	return &ttlCache[K, V]{ttl: ttl, values: cache.NewLRUExpireCacheWithClock(size, nowFunc(now))}
}

func (c *ttlCache[K, V]) get(key K) (V, bool) {
	found, ok := c.values.Get(key)
	value, _ := found.(V) // found is nil if the key is missing
	return value, ok
}

func (c *ttlCache[K, V]) put(key K, value V) { c.putFor(key, value, c.ttl) }

func (c *ttlCache[K, V]) putFor(key K, value V, ttl time.Duration) { c.values.Add(key, value, ttl) }

func (c *ttlCache[K, V]) remove(key K) { c.values.Remove(key) }

// nowFunc is a clock.
type nowFunc func() time.Time

func (n nowFunc) Now() time.Time { return n() }
