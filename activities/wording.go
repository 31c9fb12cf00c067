package activities

import (
	"fmt"
)

const (
	// maxExplanation is how long an Event may be, in bytes, and maxWhy what it says of why, in characters.
	maxExplanation = 1000
	maxWhy         = 800
)

// counted is a number of things in English.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shortened cuts a sentence that an Event would not hold.
func shortened(sentence string) string {
	if len(sentence) <= maxExplanation {
		return sentence
	}
	const rest = "... (tenon why pod says the rest)"
	cut := maxExplanation - len(rest)
	for cut > 0 && sentence[cut]&0xC0 == 0x80 {
		cut-- // not in the middle of a character
	}
	return sentence[:cut] + rest
}
