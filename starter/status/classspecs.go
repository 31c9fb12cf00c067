package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// classSpecs remembers the specs of node classes by their hashes, to find out which fields have changed when a hash
// has. The memory is this process's own: of earlier changes only the hashes are known.
type classSpecs map[string]map[string]json.RawMessage

// see records the spec of a class. The first spec seen under a hash is kept: after an edit the new spec shows a moment
// before its hash.
func (s classSpecs) see(class *awsv1.EC2NodeClass) {
	hash := class.Annotations[awsv1.AnnotationEC2NodeClassHash]
	if hash == "" || s[hash] != nil {
		return
	}
	if fields := specFields(class); fields != nil {
		s[hash] = fields
	}
}

// changed returns a message that names the fields of a class that have changed since it had a hash; empty if they are
// not known. Selectors are not part of the hash.
func (s classSpecs) changed(class *awsv1.EC2NodeClass, hash string) string {
	was, is := s[hash], s[class.Annotations[awsv1.AnnotationEC2NodeClassHash]]
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
	return fmt.Sprintf("EC2NodeClass %s: %s changed since the claim was made", class.Name, strings.Join(names, " and "))
}

// specFields returns the fields of a class's spec as JSON, or nil if it cannot be encoded.
func specFields(class *awsv1.EC2NodeClass) map[string]json.RawMessage {
	data, err := json.Marshal(class.Spec)
	if err != nil {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil
	}
	return fields
}
