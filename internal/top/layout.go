package top

import (
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// fit is a column with the width that it gets.
type fit struct {
	column
	room int
}

// layout gives columns their room in a width. Where it is too narrow, columns are left out by their rank. A width of zero means
// as wide as the rows need.
func layout(columns []column, rows []row, width int) []fit {
	if width <= 0 {
		return natural(columns, rows)
	}
	shown := slices.Clone(columns)
	for needed(shown) > width {
		at := -1
		for i := range shown {
			if shown[i].rank > 0 && (at < 0 || shown[i].rank > shown[at].rank) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		shown = slices.Delete(shown, at, at+1)
	}
	left, shares := width-needed(shown), 0
	for _, c := range shown {
		shares += c.share
	}
	fits := make([]fit, 0, len(shown))
	for _, c := range shown {
		room := c.width
		if c.share > 0 && left > 0 {
			more := left * c.share / shares
			room, left, shares = room+more, left-more, shares-c.share
		}
		fits = append(fits, fit{c, room})
	}
	return fits
}

// needed is how wide columns are at least, with a space between two.
func needed(columns []column) int {
	width := max(0, len(columns)-1)
	for _, c := range columns {
		width += c.width
	}
	return width
}

func natural(columns []column, rows []row) []fit {
	fits := make([]fit, 0, len(columns))
	for _, c := range columns {
		room := ansi.StringWidth(c.title)
		for i := range rows {
			if rows[i].group == nil {
				room = max(room, ansi.StringWidth(oneLine(c.cell(&rows[i]))))
			}
		}
		fits = append(fits, fit{c, room})
	}
	return fits
}
