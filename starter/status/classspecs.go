package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// classSpecs remembers what the specs of node classes were, by their hashes, so that a class whose hash has changed can be
// told apart from what it was. It is a memory of this process: of a change before its time only the hashes are known.
type classSpecs map[string]map[string]json.RawMessage

// see remembers the spec of a class. The first spec seen under a hash is the one: an edit shows a moment before its hash.
func (s classSpecs) see(class *awsv1.EC2NodeClass) {
	hash := class.Annotations[awsv1.AnnotationEC2NodeClassHash]
	if hash == "" || s[hash] != nil {
		return
	}
	if fields := specFields(class); fields != nil {
		s[hash] = fields
	}
}

// changed names the fields of a class that have changed since it had a hash; empty where that is not known. Selectors
// take no part in the hash.
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

// specFields are the fields of a class's spec as JSON; nil where it has none.
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
