// Package functional stands in for the package of this name in karpenter-core v0.32, which is no longer published.
package functional

import "strings"

// SplitCommaSeparatedString returns the trimmed parts of a list.
func SplitCommaSeparatedString(list string) []string {
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
