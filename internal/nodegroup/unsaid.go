package nodegroup

import (
	"reflect"
	"slices"
	"strings"
)

// fields says what becomes of the fields of one of the SDK's types. A field that is in neither list has no equivalent.
type fields struct {
	// carried are fields that become part of a manifest, or that have a note of their own.
	carried []string
	// silent are fields that say nothing about nodes, each with the reason.
	silent map[string]string
	// lost are reasons and advice for fields without an equivalent.
	lost map[string]string
}

// noEquivalent is the note about a field that nobody has written one for.
const noEquivalent = "NodePools and EC2NodeClasses have nothing like it"

// say notes every field of a struct that is set and neither carried nor silent. path precedes the fields' names.
func (p *proposal) say(path string, of any, known fields) {
	v := reflect.ValueOf(of)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || empty(v.Field(i)) || slices.Contains(known.carried, field.Name) || known.silent[field.Name] != "" {
			continue
		}
		text := known.lost[field.Name]
		if text == "" {
			text = noEquivalent
		}
		p.lost(path+wireName(field.Name), "%s", text)
	}
}

// empty reports whether a field says nothing: absent, false, or with nothing in it.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || v.Elem().Kind() == reflect.Bool && !v.Elem().Bool() || v.Elem().Kind() == reflect.Struct && emptyStruct(v.Elem())
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

func emptyStruct(v reflect.Value) bool {
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && !empty(v.Field(i)) {
			return false
		}
	}
	return true
}

// emptyStructOf is emptyStruct of what a pointer that is not nil points to.
func emptyStructOf(of any) bool { return emptyStruct(reflect.ValueOf(of).Elem()) }

// wireName returns a field's name as AWS's APIs and the AWS CLI spell it for EKS; other services begin with a capital.
func wireName(name string) string { return strings.ToLower(name[:1]) + name[1:] }
