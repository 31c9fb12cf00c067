package main

import (
	"fmt"
	"slices"
	"strings"
)

// reasonsDocument returns the document about the reasons for which nodes go, stay or wait.
func reasonsDocument(f *flow, w words) (string, error) {
	var text strings.Builder
	text.WriteString(`# Reasons

The words by which Tenon says why a node went, why it stays, and what holds up a drain; from the constants in the code and their comments. Beside
each word there is a sentence that names the objects. [Troubleshooting](../troubleshooting.md) begins with those sentences.
`)
	for _, section := range []struct {
		title, where string
		keep         func(n *named) bool
	}{
		{"Why a node went", "`tenon history`, the search attribute `Reason` in Temporal, the condition `DisruptionReason` of a NodeClaim, and the label `reason` of metrics show one of these.",
			func(n *named) bool {
				return strings.HasSuffix(n.Package, "/workflows") && strings.HasPrefix(n.Name, "Reason") || strings.HasPrefix(n.Name, "DisruptionReason") && n.of == ""
			}},
		{"Why a node stays", "`tenon why node` and its `-o json` show the cause for each kind of disruption.",
			func(n *named) bool {
				return strings.HasSuffix(n.Package, "/plan/model") && strings.HasPrefix(n.Name, "Cause")
			}},
		{"Why a node drifted", "The condition `Drifted` of a NodeClaim has one of these, and a message with the field and both values.",
			func(n *named) bool {
				return (strings.HasPrefix(n.Name, "Drift") || strings.HasPrefix(n.Name, "drift")) && n.of == "" && n.Name != "DriftedConditionType"
			}},
		{"What holds up a drain", "`tenon drain status` and the Event `FailedDraining` name the pod, this cause, and what is behind it.",
			func(n *named) bool {
				return strings.HasSuffix(n.Package, "/activities") && strings.HasPrefix(n.Name, "blockedBy") || strings.HasSuffix(n.Package, "/plan/lifecycle") && strings.HasPrefix(n.Name, "Hold")
			}},
	} {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n| reason | meaning |\n|---|---|\n", section.title, section.where)
		var rows []string
		for _, n := range f.declared(section.keep) {
			if n.Doc == "" {
				return "", fmt.Errorf("%s: the reason %s has no comment", n.file, n.Name)
			}
			row := fmt.Sprintf("| `%s` | %s |\n", n.Value, w.meaning(n))
			if !slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, "| `"+n.Value+"` ") }) {
				rows = append(rows, row)
			}
		}
		if len(rows) == 0 {
			return "", fmt.Errorf("no reasons are declared: %s", section.title)
		}
		slices.Sort(rows)
		text.WriteString(strings.Join(rows, ""))
	}
	return text.String(), nil
}
