package top

import "charm.land/bubbles/v2/key"

// keys are what people can press. Digits choose a list.
type keys struct {
	up, down, pageUp, pageDown, first, last key.Binding
	next, previous, open, back, fold        key.Binding
	sort, turn, group, filter, ask          key.Binding
	help, quit                              key.Binding
}

func newKeys() keys {
	bind := func(shown, does string, pressed ...string) key.Binding {
		return key.NewBinding(key.WithKeys(pressed...), key.WithHelp(shown, does))
	}
	return keys{
		up: bind("↑", "up", "up", "k"), down: bind("↓", "down", "down", "j"),
		pageUp: bind("PgUp", "a page up", "pgup", "ctrl+b"), pageDown: bind("PgDn", "a page down", "pgdown", "ctrl+f", "space"),
		first: bind("Home", "the first", "home"), last: bind("End", "the last", "end", "G"),
		next: bind("Tab", "next list", "tab", "right"), previous: bind("⇧Tab", "previous list", "shift+tab", "left"),
		open: bind("Enter", "open", "enter"), back: bind("Esc", "back", "esc", "backspace"), fold: bind("-", "fold a group, or unfold it", "-", "+"),
		sort: bind("s", "sort", "s"), turn: bind("S", "turn the order around", "S"), group: bind("g", "group", "g"),
		filter: bind("/", "filter", "/"), ask: bind("w", "ask why again", "w"), help: bind("?", "help", "?"), quit: bind("q", "quit", "q", "ctrl+c"),
	}
}

// ShortHelp implements help.KeyMap.
func (k keys) ShortHelp() []key.Binding {
	return []key.Binding{k.open, k.back, k.next, k.sort, k.group, k.filter, k.help, k.quit}
}

// FullHelp implements help.KeyMap.
func (k keys) FullHelp() [][]key.Binding {
	return [][]key.Binding{
		{k.up, k.down, k.pageUp, k.pageDown, k.first, k.last},
		{k.next, k.previous, k.open, k.back, k.fold, k.ask},
		{k.sort, k.turn, k.group, k.filter, k.help, k.quit},
	}
}
