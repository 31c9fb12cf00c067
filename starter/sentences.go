package starter

import (
	"hash/fnv"
	"strings"
)

const (
	// maxEvents bounds the objects that Events are recorded for after one look. The rest follows with later looks.
	maxEvents = 50
	// eventLength is how long the message of an Event may be, in bytes.
	eventLength = 1000
)

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

// shortened cuts a sentence that an Event would not hold, not in the middle of a character.
func shortened(message string) string {
	if len(message) <= eventLength {
		return message
	}
	cut := eventLength - 3
	for cut > 0 && message[cut]&0xC0 == 0x80 {
		cut--
	}
	return message[:cut] + "..."
}
