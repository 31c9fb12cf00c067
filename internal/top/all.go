package top

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// All returns every list as text, for a pipe: as wide as it needs to be, or cut to a width.
func All(look Look, options Options, width int) string {
	s := New(options)
	s.look = &look
	var out strings.Builder
	line := func(text string) {
		out.WriteString(strings.TrimRight(text, " "))
		out.WriteByte('\n')
	}
	for _, text := range append(summary(&look, options), warnings(&look, options)...) {
		line(text)
	}
	for i, l := range s.lists {
		filter := ""
		if l.name == "nodes" {
			filter = options.Filter
		}
		rows := l.found(&look, filter, s.places[i].sort)
		if l.name == "nodes" {
			rows = grouped(rows, s.group, s.folded)
		}
		if len(rows) == 0 {
			continue
		}
		s.at = i
		fits := layout(l.columns, rows, width)
		line("")
		line(lipgloss.NewStyle().Bold(true).Render(strings.ToUpper(l.title)))
		line(titlesOf(fits))
		for r := range rows {
			if rows[r].group != nil {
				line(groupLine(&rows[r], options))
			} else {
				line(s.cells(&rows[r], fits, true))
			}
		}
	}
	return out.String()
}
