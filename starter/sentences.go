package starter

import (
	"hash/fnv"
	"strings"
)

// maxEvents limits how many objects Events are recorded for after one look. The rest follow with later looks.
const maxEvents = 50

// markOf returns a hash of a message without its digits: changed counts and prices are no news.
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
