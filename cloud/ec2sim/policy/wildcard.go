package policy

import "strings"

func anyOf[T any](list []T, f func(T) bool) bool {
	for _, item := range list {
		if f(item) {
			return true
		}
	}
	return false
}

// arnParts is the number of colon-separated parts of an ARN; the last part may contain colons.
const arnParts = 6

// matchARN compares part by part, because a wildcard does not match across the colons that separate the parts.
func matchARN(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	patterns, parts := strings.SplitN(pattern, ":", arnParts), strings.SplitN(arn, ":", arnParts)
	if len(patterns) != len(parts) {
		return false
	}
	for i := range patterns {
		if !matchWildcard(patterns[i], parts[i]) {
			return false
		}
	}
	return true
}

// matchWildcard matches text against a pattern in which * stands for any text, including none, and ? for any one
// character.
func matchWildcard(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
