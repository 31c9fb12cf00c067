package solve

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Bitset is a set of small integers.
type Bitset []uint64

// NewBitset returns an empty set of numbers below size.
func NewBitset(size int) Bitset { return make(Bitset, (size+63)/64) }

// Set adds a number.
func (b Bitset) Set(i int) { b[i>>6] |= 1 << (i & 63) }

// Clear removes a number.
func (b Bitset) Clear(i int) { b[i>>6] &^= 1 << (i & 63) }

// Has says whether a number is in the set.
func (b Bitset) Has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }

// DeleteFunc removes the numbers for which holds is true.
func (b Bitset) DeleteFunc(holds func(int) bool) {
	for i := range b.All {
		if holds(i) {
			b.Clear(i)
		}
	}
}

// Intersect removes the numbers that are not in other.
func (b Bitset) Intersect(other Bitset) {
	for i := range b {
		b[i] &= other[i]
	}
}

// Unite adds the numbers in other.
func (b Bitset) Unite(other Bitset) {
	for i := range b {
		b[i] |= other[i]
	}
}

// Exclude removes the numbers in other.
func (b Bitset) Exclude(other Bitset) {
	for i := range b {
		b[i] &^= other[i]
	}
}

// Intersects says whether the sets share a number.
func (b Bitset) Intersects(other Bitset) bool {
	for i := range b {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// Within says whether other has every member.
func (b Bitset) Within(other Bitset) bool {
	for i := range b {
		if b[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

// Empty reports whether the set has no numbers.
func (b Bitset) Empty() bool {
	return !slices.ContainsFunc(b, func(word uint64) bool { return word != 0 })
}

// Key returns a string that is equal for equal sets.
func (b Bitset) Key() string {
	key := make([]byte, 0, len(b)*8)
	for _, word := range b {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	return string(key)
}

// Clone returns a copy of the set.
func (b Bitset) Clone() Bitset { return slices.Clone(b) }

// All yields every number in ascending order.
func (b Bitset) All(yield func(int) bool) {
	for w, word := range b {
		for word != 0 {
			if !yield(w<<6 + bits.TrailingZeros64(word)) {
				return
			}
			word &= word - 1
		}
	}
}
