package activities

import (
	"fmt"
)

const (
	// maxExplanation limits the length of an Event's message in bytes, and maxWhy that of a cause named in it in
	// characters.
	maxExplanation = 1000
	maxWhy         = 800
)

// counted returns a number and its noun in English, such as "1 pod" or "2 pods".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shortened cuts a sentence that is too long for an Event.
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
