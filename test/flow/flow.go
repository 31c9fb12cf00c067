// Package flow builds parts of the manifests of the suites' scenarios: pieces in YAML's flow style, which fit into a row of
// a table, and blocks of lines that are put into a larger manifest.
package flow

import (
	"fmt"
	"strings"
)

// In returns a requirement, or an expression of a selector, with the operator In.
func In(key string, values ...string) string { return Expression(key, "In", values...) }

// Expression returns a requirement, or an expression of a selector.
func Expression(key, operator string, values ...string) string {
	if len(values) == 0 {
		return fmt.Sprintf("{key: %s, operator: %s}", key, operator)
	}
	return fmt.Sprintf(`{key: %s, operator: %s, values: ["%s"]}`, key, operator, strings.Join(values, `", "`))
}

// Or returns the values, or the others if there are none.
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

// Lines puts each field on its own line, indented by this many columns.
func Lines(by int, fields []string) string { return Indent(by, strings.Join(fields, "\n")) }

// Indent indents every line of a text by this many columns. It returns an empty string for a text without lines.
func Indent(by int, text string) string {
	text = strings.Trim(text, "\n")
	if text == "" {
		return ""
	}
	start := "\n" + strings.Repeat(" ", by)
	return start + strings.ReplaceAll(text, "\n", start)
}
