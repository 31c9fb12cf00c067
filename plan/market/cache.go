package market

// Cache keeps answers by what was asked. The zero value is empty.
type Cache[K comparable, V any] map[K]V

// Of is the answer to a question, which is worked out the first time.
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
