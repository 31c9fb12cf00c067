package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Document is one object of some files, of whatever kind.
type Document struct {
	// Place says where it is, for people.
	Place string
	// JSON is the object.
	JSON []byte
}

// Documents reads files, directories and standard input as Read does, and returns their objects as they are. The items of
// lists are documents of their own. The error joins all documents that are not YAML or JSON.
func Documents(paths []string, stdin io.Reader) ([]Document, error) {
	docs, err := documents(paths, stdin)
	if err != nil {
		return nil, err
	}
	var found []Document
	var wrong mistakes
	for len(docs) > 0 {
		doc := docs[0]
		docs = docs[1:]
		data := doc.data
		if !doc.json {
			if data, err = yaml.YAMLToJSONStrict(doc.data); err != nil {
				wrong = append(wrong, &mistake{place: doc.place, problem: notYAML(err, doc.line)})
				continue
			}
		}
		if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
			continue
		}
		var head header
		if json.Unmarshal(data, &head) == nil && isList(head) {
			docs = append(itemsOf(doc.place, head).items, docs...)
			continue
		}
		found = append(found, Document{Place: doc.place.String(), JSON: data})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return found, nil
}

// FieldError is something wrong with one field of a document.
type FieldError struct {
	// Field is the path of the field.
	Field string
	// Text says what is wrong, and what to write instead where that is known.
	Text string
}

// Error implements error.
func (p *FieldError) Error() string {
	if p.Field == "" {
		return p.Text
	}
	return fmt.Sprintf("%s: %s", p.Field, p.Text)
}

// Decode decodes JSON into a pointer to a type. It returns the fields that the type does not have or that are given twice,
// and as an error, a *FieldError, the first value that does not have the type of its field.
func Decode(data []byte, into any) (unknown []FieldError, err error) {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		field, text := mismatch(data, into, err)
		return nil, &FieldError{Field: field, Text: text}
	}
	for _, problem := range strict {
		field, text := unknownField(into, problem)
		unknown = append(unknown, FieldError{Field: field, Text: text})
	}
	return unknown, nil
}
