package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloud"
)

// classSpecs remembers the specs of node classes by their hashes, to find out which fields have changed when a hash
// has. The memory is this process's own: of earlier changes only the hashes are known.
type classSpecs struct {
	kind cloud.Kind
	// fields are the fields of a spec by its hash.
	fields map[string]map[string]json.RawMessage
}

func newClassSpecs(kind cloud.Kind) classSpecs {
	return classSpecs{kind: kind, fields: map[string]map[string]json.RawMessage{}}
}

// see records the spec of a class. The first spec seen under a hash is kept: after an edit the new spec shows a moment
// before its hash.
func (s classSpecs) see(class cloud.NodeClass) {
	hash := class.GetAnnotations()[s.kind.HashKey]
	if hash == "" || s.fields[hash] != nil {
		return
	}
	if fields := specFields(class); fields != nil {
		s.fields[hash] = fields
	}
}

// changed returns a message that names the fields of a class that have changed since it had a hash; empty if they are
// not known. Selectors are not part of the hash.
func (s classSpecs) changed(class cloud.NodeClass, hash string) string {
	was, is := s.fields[hash], s.fields[class.GetAnnotations()[s.kind.HashKey]]
	if was == nil || is == nil {
		return ""
	}
	all := maps.Clone(was)
	maps.Copy(all, is)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if string(was[name]) != string(is[name]) && !strings.HasSuffix(name, "SelectorTerms") {
			names = append(names, "spec."+name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s: %s changed since the claim was made", s.kind.Kind, class.GetName(), strings.Join(names, " and "))
}

// specFields returns the fields of a class's spec as JSON, or nil if it cannot be encoded.
func specFields(class cloud.NodeClass) map[string]json.RawMessage {
	data, err := json.Marshal(class)
	if err != nil {
		return nil
	}
	var object struct{ Spec map[string]json.RawMessage }
	if err := json.Unmarshal(data, &object); err != nil {
		return nil
	}
	return object.Spec
}
