package starter

import (
	"hash/fnv"
	"strings"
)

// maxEvents bounds the objects that Events are recorded for after one look. The rest follows with later looks.
const maxEvents = 50

// markOf tells sentences apart, whatever numbers are in them: counts and prices that change make no news.
func markOf(message string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, message)))
	return hash.Sum64()
}
