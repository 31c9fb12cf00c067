package market

// Cache holds computed values by key. The zero value is empty.
type Cache[K comparable, V any] map[K]V

// Of returns the value for a key. It calls find only the first time.
func (c *Cache[K, V]) Of(key K, find func() V) V {
	value, known := (*c)[key]
	if !known {
		value = find()
		if *c == nil {
			*c = Cache[K, V]{}
		}
		(*c)[key] = value
	}
	return value
}
