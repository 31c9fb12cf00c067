package activities

import (
	"fmt"
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
	if len(sentence) <= explanationMost {
		return sentence
	}
	const rest = "... (tenon why pod says the rest)"
	cut := explanationMost - len(rest)
	for cut > 0 && sentence[cut]&0xC0 == 0x80 {
		cut-- // not in the middle of a character
	}
	return sentence[:cut] + rest
}

// whyMost bounds in bytes what an Event says of why.
const whyMost = 800
