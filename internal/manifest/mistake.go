package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"
)

// mistake is something wrong with a manifest.
type mistake struct {
	place place
	// field is the path of the field; empty if the mistake is about the whole object.
	field   string
	problem string
}

// Error implements error.
func (m *mistake) Error() string {
	if m.field == "" {
		return m.place.String() + ": " + m.problem
	}
	return m.place.String() + ": " + m.field + ": " + m.problem
}

// maxMistakes limits how many mistakes are listed, since somebody has to read them.
const maxMistakes = 20

// mistakes are all mistakes that were found.
type mistakes []*mistake

// Error implements error, one mistake per line.
func (m mistakes) Error() string {
	if len(m) == 1 {
		return m[0].Error()
	}
	lines := []string{fmt.Sprintf("%d mistakes in the manifests:", len(m))}
	for i, one := range m {
		if i == maxMistakes {
			lines = append(lines, fmt.Sprintf("  and %d more", len(m)-i))
			break
		}
		lines = append(lines, "  "+one.Error())
	}
	return strings.Join(lines, "\n")
}

func wrongly(at place, field, problem string) answer {
	return answer{wrong: mistakes{{place: at, field: field, problem: problem}}}
}

// yamlLine matches a line number in a message of the YAML parser, whose errors have no field for it.
var yamlLine = regexp.MustCompile(`line (\d+)`)

// notYAML describes a syntax error with lines of the file instead of lines of the document.
func notYAML(err error, first int) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	text = yamlLine.ReplaceAllStringFunc(text, func(found string) string {
		line, _ := strconv.Atoi(strings.TrimPrefix(found, "line ")) // the pattern matches digits only
		return fmt.Sprintf("line %d", line+first-1)
	})
	return "it is not YAML: " + strings.ReplaceAll(text, "\n", " ")
}

// unknownField describes an error of strict decoding, with the field that was probably meant.
func unknownField(into any, err error) (field, problem string) {
	var at kjson.FieldError
	if !errors.As(err, &at) {
		return "", err.Error()
	}
	path := at.FieldPath()
	if strings.HasPrefix(err.Error(), "duplicate field") {
		return path, "is given twice: remove one"
	}
	parent, name := "", path
	if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
		parent, name = path[:dot], path[dot+1:]
	}
	problem = "there is no such field"
	if meant := nearest(name, fieldsAt(reflect.TypeOf(into), parent)); meant != "" {
		problem += fmt.Sprintf(": did you mean %s?", meant)
	} else {
		problem += ": remove it, or move it where it belongs"
	}
	return path, problem
}

// fieldsAt lists the JSON names of the fields that the struct at a path has.
func fieldsAt(t reflect.Type, path string) []string {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		t = elem(t)
		switch t.Kind() {
		case reflect.Slice, reflect.Map, reflect.Array:
			t = t.Elem()
		case reflect.Struct:
			next := jsonFields(t)[step]
			if next == nil {
				return nil
			}
			t = next
		default:
			return nil
		}
	}
	if t = elem(t); t.Kind() != reflect.Struct {
		return nil
	}
	return slices.Sorted(maps.Keys(jsonFields(t)))
}

func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// jsonFields returns the types of a struct's fields by JSON name, including those of inlined structs.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			if inner := elem(f.Type); inner.Kind() == reflect.Struct {
				maps.Copy(fields, jsonFields(inner))
			}
		case name != "":
			fields[name] = f.Type
		}
	}
	return fields
}

// nearest returns the candidate that a misspelt word was probably meant to be, or "" if none is near.
func nearest(word string, candidates []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the letters to change, insert or drop (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// kindLike suggests the kind of the same group that was probably meant.
func kindLike(group, kind string) string {
	var names []string
	for known := range kinds {
		if known.Group == group {
			names = append(names, known.Kind)
		}
	}
	slices.Sort(names)
	meant := nearest(kind, names)
	// A kind that is merely similar, as Role is to Node, is not one that planning uses.
	if meant == "" || distance(strings.ToLower(kind), strings.ToLower(meant)) > 2 || len(kind) < 6 {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", meant)
}

// mismatch describes an error of decoding into a type.
func mismatch(data []byte, into any, err error) (field, problem string) {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		problem = fmt.Sprintf("must be %s, and is a JSON %s", kindOf(wrongType.Type), wrongType.Value)
		if elem(wrongType.Type).Kind() == reflect.String && (wrongType.Value == "bool" || strings.HasPrefix(wrongType.Value, "number")) {
			problem += ": put it in quotes"
		}
		return wrongType.Field, problem
	}
	var decoded any
	if json.Unmarshal(data, &decoded) == nil {
		if path, text, found := badQuantity(decoded, reflect.TypeOf(into), ""); found {
			return path, fmt.Sprintf("%q is not a quantity: write for example 500m, 2, 1.5Gi", text)
		}
	}
	return "", strings.TrimPrefix(err.Error(), "json: ")
}

// kindOf describes for people what a Go type is in JSON.
func kindOf(t reflect.Type) string {
	switch elem(t).Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a map"
	}
	return "a number"
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// badQuantity looks for a value that should be a quantity and is not. The decoder's own error does not say where it is.
func badQuantity(v any, t reflect.Type, path string) (at, text string, found bool) {
	t = elem(t)
	if t == quantityType {
		text = fmt.Sprint(v)
		_, err := resource.ParseQuantity(text)
		return path, text, err != nil
	}
	switch v := v.(type) {
	case map[string]any:
		var fields map[string]reflect.Type
		if t.Kind() == reflect.Struct {
			fields = jsonFields(t)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			next := fields[key]
			if t.Kind() == reflect.Map {
				next = t.Elem()
			}
			if next == nil {
				continue
			}
			if at, text, found := badQuantity(v[key], next, strings.TrimPrefix(path+"."+key, ".")); found {
				return at, text, true
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return "", "", false
		}
		for i, item := range v {
			if at, text, found := badQuantity(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); found {
				return at, text, true
			}
		}
	}
	return "", "", false
}
