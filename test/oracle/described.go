package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Described reduces what EC2 describes, such as an instance or an instance type, to a document: the paths are those of the
// SDK's structure. Fields without a value are not in it.
func Described(structure any) (Document, error) {
	text, err := json.Marshal(structure)
	if err != nil {
		return nil, fmt.Errorf("reduce %T: %w", structure, err)
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("reduce %T: %w", structure, err)
	}
	document := Document{}
	describe("", content, document)
	return document, nil
}

func describe(path string, value any, into Document) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for key, inner := range value {
			describe(strings.TrimPrefix(path+"."+key, "."), inner, into)
		}
	case []any:
		describeList(path, value, into)
	case float64:
		into[path] = strconv.FormatFloat(value, 'f', -1, 64)
	default:
		if text := fmt.Sprint(value); text != "" {
			into[path] = text
		}
	}
}

// describeList names an item of a list by what identifies it, or by its number. A tag is its value, and a list of texts or
// of security groups a set.
func describeList(path string, items []any, into Document) {
	var set []string
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			set = append(set, fmt.Sprint(item))
			continue
		}
		attachment, _ := fields["Attachment"].(map[string]any)
		switch {
		case fields["Key"] != nil:
			describe(fmt.Sprintf("%s[%v]", path, fields["Key"]), fields["Value"], into)
		case fields["GroupId"] != nil:
			set = append(set, fmt.Sprint(fields["GroupId"]))
		case fields["DeviceName"] != nil:
			describe(fmt.Sprintf("%s[%v]", path, fields["DeviceName"]), item, into)
		case attachment != nil:
			describe(fmt.Sprintf("%s[%v/%v]", path, attachment["NetworkCardIndex"], attachment["DeviceIndex"]), item, into)
		default:
			describe(fmt.Sprintf("%s[%d]", path, i), item, into)
		}
	}
	if len(set) > 0 {
		slices.Sort(set)
		into[path] = strings.Join(set, " ")
	}
}
