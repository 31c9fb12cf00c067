package top

import (
	"context"
	"slices"
	"strings"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
)

// Screen is what a terminal shows. It is a model of Bubble Tea, which is told every Look.
type Screen struct {
	options Options
	styles  styles
	keys    keys
	help    help.Model
	input   textinput.Model

	look          *Look
	waiting       Waiting
	width, height int

	lists []*list
	// at is the list that is shown, and places are where people are in each. opened are the details on top of it.
	at     int
	places []position
	opened []*details

	group             string
	folded            map[string]bool
	filter            string
	filtering, helped bool

	// rows are what is shown now; they are made anew after every change.
	rows  []row
	stale bool
}

// position is where somebody is in a list, and how the list is ordered.
type position struct {
	sort string
	// cursor is the row that is chosen, top the first that is drawn, and on the place of the chosen row.
	cursor, top int
	on          place
}

// Waiting says what the first Look waits for. A Screen takes it as a message.
type Waiting string

// told is the answer to a question of details.
type told struct {
	of   *details
	text string
}

// New returns a Screen that waits for its first Look.
func New(options Options) *Screen {
	s := &Screen{options: options, styles: newStyles(options.Colors), keys: newKeys(), help: help.New(), input: textinput.New(), width: 80, height: 24,
		lists: lists(options), group: options.Group, filter: options.Filter, folded: map[string]bool{}, stale: true}
	s.input.Prompt = "/"
	s.input.SetVirtualCursor(false)
	s.input.KeyMap.Paste.SetEnabled(false) // it would start programs that read the clipboard; the terminal pastes itself
	if s.group == "" {
		s.group = groupings[0]
	}
	for _, l := range s.lists {
		s.places = append(s.places, position{sort: l.sort})
	}
	if options.Sort != "" {
		s.places[0].sort = options.Sort
	}
	return s
}

// Init implements tea.Model.
func (s *Screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s *Screen) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	var then tea.Cmd
	switch message := message.(type) {
	case Look:
		s.look = &message
	case Waiting:
		s.waiting = message
	case tea.WindowSizeMsg:
		s.width, s.height = message.Width, message.Height
		s.help.SetWidth(message.Width)
	case told:
		message.of.told, message.of.asking = message.text, false
	case tea.KeyPressMsg:
		if s.filtering {
			then = s.typed(message)
		} else {
			then = s.pressed(message)
		}
	case tea.PasteMsg:
		if s.filtering {
			s.input, then = s.input.Update(message)
			s.filter = s.input.Value()
		}
	default:
		return s, nil
	}
	s.stale = true
	s.refresh()
	return s, then
}

// here is where somebody is now.
func (s *Screen) here() *position {
	if d := s.details(); d != nil {
		return &d.at
	}
	return &s.places[s.at]
}

// details returns the details that are shown; nil while a list is.
func (s *Screen) details() *details {
	if len(s.opened) == 0 {
		return nil
	}
	return s.opened[len(s.opened)-1]
}

// refresh makes the rows anew, and keeps the cursor on the row where it was.
func (s *Screen) refresh() {
	if s.look == nil || !s.stale {
		return
	}
	s.stale = false
	here, shown := s.here(), s.lists[s.at]
	if d := s.details(); d != nil {
		s.rows = d.rows(s.look, s.options, s.width)
	} else if s.rows = shown.found(s.look, s.filter, here.sort); shown.name == "nodes" {
		s.rows = grouped(s.rows, s.group, s.folded)
	}
	if at := slices.IndexFunc(s.rows, func(r row) bool { return r.place == here.on }); here.on != (place{}) && at >= 0 {
		here.cursor = at
	}
	s.move(0)
}

// move moves the cursor, and the rows that are drawn with it.
func (s *Screen) move(by int) {
	here, room := s.here(), s.room()
	here.cursor = max(0, min(here.cursor+by, len(s.rows)-1))
	here.top = max(0, min(here.top, here.cursor, len(s.rows)-room))
	here.top = max(here.top, here.cursor-room+1)
	if here.cursor < len(s.rows) {
		here.on = s.rows[here.cursor].place
	}
}

// typed takes a key while a filter is being written.
func (s *Screen) typed(pressed tea.KeyPressMsg) (then tea.Cmd) {
	switch pressed.String() {
	case "enter":
		s.filtering = false
	case "esc":
		s.filtering, s.filter = false, ""
	case "ctrl+c":
		return tea.Quit
	default:
		s.input, then = s.input.Update(pressed)
		s.filter = s.input.Value()
	}
	return then
}

// pressed takes a key.
func (s *Screen) pressed(pressed tea.KeyPressMsg) tea.Cmd {
	k := s.keys
	switch {
	case key.Matches(pressed, k.quit):
		return tea.Quit
	case key.Matches(pressed, k.help):
		s.helped = !s.helped
	case s.helped:
		s.helped = false
	case key.Matches(pressed, k.up):
		s.move(-1)
	case key.Matches(pressed, k.down):
		s.move(1)
	case key.Matches(pressed, k.pageUp):
		s.move(-s.room())
	case key.Matches(pressed, k.pageDown):
		s.move(s.room())
	case key.Matches(pressed, k.first):
		s.move(-len(s.rows))
	case key.Matches(pressed, k.last):
		s.move(len(s.rows))
	case key.Matches(pressed, k.open):
		return s.open()
	case key.Matches(pressed, k.back):
		s.back()
	case key.Matches(pressed, k.ask):
		return s.ask(s.details())
	default:
		return s.arranged(pressed)
	}
	return nil
}

// arranged takes a key that says which list is shown, or how.
func (s *Screen) arranged(pressed tea.KeyPressMsg) tea.Cmd {
	k := s.keys
	switch digit := strings.Index("12345", pressed.String()); {
	case digit >= 0 && pressed.String() != "":
		s.choose(digit)
	case key.Matches(pressed, k.next):
		s.choose((s.at + 1) % len(s.lists))
	case key.Matches(pressed, k.previous):
		s.choose((s.at + len(s.lists) - 1) % len(s.lists))
	case len(s.opened) > 0: // details have no order and no filter
	case key.Matches(pressed, k.sort):
		s.reorder()
	case key.Matches(pressed, k.turn):
		here := s.here()
		if name, down := strings.CutPrefix(here.sort, "-"); down {
			here.sort = name
		} else {
			here.sort = "-" + name
		}
	case key.Matches(pressed, k.group):
		s.group = groupings[(slices.Index(groupings, s.group)+1)%len(groupings)]
	case key.Matches(pressed, k.fold):
		s.fold()
	case key.Matches(pressed, k.filter):
		s.filtering = true
		s.input.SetValue(s.filter)
		s.input.CursorEnd()
		return s.input.Focus()
	}
	return nil
}

// choose shows a list.
func (s *Screen) choose(at int) {
	s.opened = nil
	if at != s.at {
		s.at, s.filter = at, ""
	}
}

// reorder orders the list by the next column.
func (s *Screen) reorder() {
	here, columns := s.here(), s.lists[s.at].columns
	at := slices.IndexFunc(columns, func(c column) bool { return c.name == s.sorted() })
	here.sort = columns[(at+1)%len(columns)].name
}

// fold folds the group of the chosen row, or unfolds it.
func (s *Screen) fold() {
	here := s.here()
	for at := min(here.cursor, len(s.rows)-1); at >= 0; at-- {
		if g := s.rows[at].group; g != nil {
			s.folded[g.name] = !g.folded
			here.on = s.rows[at].place
			return
		}
	}
}

// open shows the details of the chosen row.
func (s *Screen) open() tea.Cmd {
	here := s.here()
	if here.cursor >= len(s.rows) {
		return nil
	}
	var d *details
	switch r := s.rows[here.cursor]; {
	case r.group != nil:
		s.fold()
	case r.node != nil:
		d = &details{kind: KindNode, key: r.node.Key, title: title(r.node)}
	case r.pod != nil:
		d = &details{kind: KindPod, key: r.pod.UID, title: r.pod.Key()}
	case r.workflow != nil:
		d = &details{kind: KindWorkflow, key: r.key, title: r.workflow.ID}
	case r.decision != nil:
		d = &details{kind: KindDecision, key: r.key, title: r.decision.ID}
	}
	if d == nil {
		return nil
	}
	s.opened = append(s.opened, d)
	return s.ask(d)
}

// back closes the details, or lifts the filter.
func (s *Screen) back() {
	if len(s.opened) > 0 {
		s.opened = s.opened[:len(s.opened)-1]
		return
	}
	s.filter = ""
}

// ask asks what `tenon why` says about details.
func (s *Screen) ask(d *details) tea.Cmd {
	if d == nil || d.asking || s.options.Why == nil || d.kind != KindNode && d.kind != KindPod {
		return nil
	}
	d.asking = true
	kind, name, why := d.kind, d.title, s.options.Why
	return func() tea.Msg {
		text, err := why(context.Background(), kind, name)
		if err != nil {
			text = err.Error()
		}
		return told{d, text}
	}
}
