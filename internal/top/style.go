package top

import (
	"image/color"

	"charm.land/lipgloss/v2"
)

// tone says how good what a cell shows is.
type tone int

const (
	plain tone = iota
	good
	fair
	bad
)

// styles are how things are drawn. What they say is also said in words, because a terminal may have no colours.
type styles struct {
	strong, faint, chosen lipgloss.Style
	tones                 [bad + 1]lipgloss.Style
}

func newStyles(colors []color.Color) styles {
	if len(colors) != 3 {
		colors = []color.Color{lipgloss.Green, lipgloss.Yellow, lipgloss.Red}
	}
	s := styles{strong: lipgloss.NewStyle().Bold(true), faint: lipgloss.NewStyle().Faint(true), chosen: lipgloss.NewStyle().Reverse(true)}
	s.tones[plain] = lipgloss.NewStyle()
	for i, c := range colors {
		s.tones[good+tone(i)] = lipgloss.NewStyle().Foreground(c)
	}
	return s
}
