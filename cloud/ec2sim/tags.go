package ec2sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// EC2's limits on tags.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

type tagXML struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func tagsXML(tags map[string]string) []tagXML {
	var out []tagXML
	for _, key := range sortedKeys(tags) {
		out = append(out, tagXML{key, tags[key]})
	}
	return out
}

// parseTags parses Tag.N with EC2's checks.
func parseTags(p *params) (map[string]string, error) {
	tags := map[string]string{}
	for _, item := range p.items("Tag") {
		key, value := item.str("Key"), item.str("Value")
		switch {
		case key == "" || len(key) > maxTagKey:
			return nil, invalidValue("Tag key must be between 1 and %d characters: '%s'", maxTagKey, key)
		case len(value) > maxTagValue:
			return nil, invalidValue("Tag value exceeds the maximum length of %d characters", maxTagValue)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return nil, invalidValue("Tag keys starting with 'aws:' are reserved for internal use")
		}
		if _, twice := tags[key]; twice {
			return nil, invalidValue("Duplicate tag key '%s' specified.", key)
		}
		tags[key] = value
	}
	if len(tags) > maxTags {
		return nil, refuse("TagLimitExceeded", "More than %d tags specified", maxTags)
	}
	return tags, nil
}

func orFalse(b *bool) *bool { return cmp.Or(b, new(bool)) }

type returnXML struct {
	Return bool `xml:"return"`
}

var returnTrue = returnXML{true}
