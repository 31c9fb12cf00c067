package plan

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// bitset is a set of small integers.
type bitset []uint64

func newBitset(size int) bitset { return make(bitset, (size+63)/64) }

func (b bitset) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) clear(i int)    { b[i>>6] &^= 1 << (i & 63) }
func (b bitset) has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }

// fill sets all from first to before last.
func (b bitset) fill(first, last int) {
	for i := first; i < last; {
		if i&63 == 0 && last-i >= 64 {
			b[i>>6] = math.MaxUint64
			i += 64
			continue
		}
		b.set(i)
		i++
	}
}

// intersect removes what is not in other.
func (b bitset) intersect(other bitset) {
	for i := range b {
		b[i] &= other[i]
	}
}

// unite adds what is in other.
func (b bitset) unite(other bitset) {
	for i := range b {
		b[i] |= other[i]
	}
}

// exclude removes what is in other.
func (b bitset) exclude(other bitset) {
	for i := range b {
		b[i] &^= other[i]
	}
}

func (b bitset) intersects(other bitset) bool {
	for i := range b {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// within says whether other has every member.
func (b bitset) within(other bitset) bool {
	for i := range b {
		if b[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

func (b bitset) empty() bool {
	for _, word := range b {
		if word != 0 {
			return false
		}
	}
	return true
}

// key is equal for equal sets.
func (b bitset) key() string {
	key := make([]byte, 0, len(b)*8)
	for _, word := range b {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	return string(key)
}

func (b bitset) clone() bitset { return append(bitset(nil), b...) }

// all calls yield for every member in rising order.
func (b bitset) all(yield func(int) bool) {
	for w, word := range b {
		for word != 0 {
			if !yield(w<<6 + bits.TrailingZeros64(word)) {
				return
			}
			word &= word - 1
		}
	}
}
