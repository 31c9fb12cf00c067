// Package flow writes what the manifests of the suites' scenarios are made of: pieces in YAML's flow style, which fit into
// a row of a table, and blocks of lines that are put into a larger manifest.
package flow

import (
	"fmt"
	"strings"
)

// In is a requirement, or an expression of a selector, with the operator In.
func In(key string, values ...string) string { return Expression(key, "In", values...) }

// Expression is a requirement, or an expression of a selector.
func Expression(key, operator string, values ...string) string {
	if len(values) == 0 {
		return fmt.Sprintf("{key: %s, operator: %s}", key, operator)
	}
	return fmt.Sprintf(`{key: %s, operator: %s, values: ["%s"]}`, key, operator, strings.Join(values, `", "`))
}

// Or is the values, or the others where there are none.
func Or(values []string, others ...string) []string {
	if len(values) == 0 {
		return others
	}
	return values
}

// Further continues a list or a mapping with entries; there may be none.
func Further(entries string) string {
	if entries == "" {
		return ""
	}
	return ", " + entries
}

// Lines are fields on lines of their own, each begun so many columns to the right.
func Lines(by int, fields []string) string { return Indent(by, strings.Join(fields, "\n")) }

// Indent begins every line of a text anew, so many columns to the right. Of a text without lines nothing is left.
func Indent(by int, text string) string {
	text = strings.Trim(text, "\n")
	if text == "" {
		return ""
	}
	start := "\n" + strings.Repeat(" ", by)
	return start + strings.ReplaceAll(text, "\n", start)
}
