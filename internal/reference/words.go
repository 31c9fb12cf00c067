package main

import (
	"go/ast"
	"regexp"
	"strings"
	"unicode"
)

// says returns a comment, or the one beside it, as one line.
func says(above, beside *ast.CommentGroup) string {
	text := above.Text()
	if text == "" {
		text = beside.Text()
	}
	return strings.Join(strings.Fields(text), " ")
}

// words turns what the code says about its constants into what a document says about their values.
type words struct {
	// values are the values of constants by their names, where only one is called so.
	values map[string]string
}

func newWords(all map[string]*named) words {
	w, twice := words{map[string]string{}}, map[string]bool{}
	for _, each := range all {
		if value, there := w.values[each.Name]; there && value != each.Value {
			twice[each.Name] = true
		}
		w.values[each.Name] = each.Value
	}
	for name := range twice {
		delete(w.values, name)
	}
	return w
}

// identifier is what a name of a constant looks like: it has a capital letter within.
var identifier = regexp.MustCompile(`\b[A-Za-z]+[a-z][A-Z]\w*\b`)

// sentence returns what is said about a constant, with the values of constants for their names.
func (w words) sentence(of *named) string {
	return w.translated(strings.Replace(of.Doc, of.Name, "\x00", 1), "`"+of.Value+"`")
}

func (w words) translated(text, itself string) string {
	text = identifier.ReplaceAllStringFunc(text, func(name string) string {
		if value, known := w.values[name]; known {
			return "`" + value + "`"
		}
		return name
	})
	return strings.ReplaceAll(text, "\x00", itself)
}

// opening is how a comment about a constant begins when a table has the constant beside it.
var opening = regexp.MustCompile("^\x00(, Karpenter's,)? (means that|means|says that|says|is why|is|goes with)\\b ?:?")

// meaning returns what is said about a constant, without the constant.
func (w words) meaning(of *named) string {
	text := opening.ReplaceAllString(strings.Replace(of.Doc, of.Name, "\x00", 1), "")
	text = strings.TrimSpace(w.translated(strings.TrimPrefix(text, "\x00"), "it"))
	return strings.ReplaceAll(capitalized(text), "|", "\\|")
}

// capitalized leaves names of fields, such as amiSelectorTerms, as they are.
func capitalized(text string) string {
	if first, _, _ := strings.Cut(text, " "); first != strings.ToLower(first) {
		return text
	}
	for i, r := range text {
		return string(unicode.ToUpper(r)) + text[i+len(string(r)):]
	}
	return ""
}
