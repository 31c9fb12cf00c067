package convert

// Effect is what a Note means for what a document says.
type Effect string

// The effects.
const (
	// Changed says that v1 has it elsewhere or in other words, or that something is worth knowing.
	Changed Effect = "changed"
	// Lost says that v1 has nothing like it.
	Lost Effect = "lost"
	// Failed says that the document was not converted.
	Failed Effect = "failed"
)

// Note tells a person about one field of one document.
type Note struct {
	// Place is the document's.
	Place string `json:"document"`
	// Kind and Name are those of the old object; in names, the namespace comes first where there is one.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Field is the path in the old object; empty if the note is about the whole of it.
	Field  string `json:"field,omitempty"`
	Effect Effect `json:"effect"`
	// Text says what happened to the field, and what to do where something has to be done.
	Text string `json:"note"`
}

// String is one line for people.
func (n Note) String() string {
	line := n.Place
	if n.Kind != "" {
		line = n.Kind + " " + n.Name
	}
	if n.Field != "" {
		line += ": " + n.Field
	}
	if n.Effect == Lost {
		return line + ": not carried over: " + n.Text
	}
	return line + ": " + n.Text
}
