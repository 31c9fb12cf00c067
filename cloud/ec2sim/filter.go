package ec2sim

import (
	"maps"
	"slices"
	"strings"
)

// filter is one Filter.N of a Describe call: the resource must have the attribute with one of the values, in which * and
// ? are wildcards and a backslash escapes them.
type filter struct {
	name   string
	values []string
}

func parseFilters(p *params) []filter {
	var filters []filter
	for _, item := range p.items("Filter") {
		filters = append(filters, filter{name: item.str("Name"), values: item.strings("Value")})
	}
	return filters
}

// attributes returns a resource's values for a filter name, or false if the call does not support that filter.
type attributes func(name string) ([]string, bool)

// matches reports whether a resource passes all filters. It fails for a filter that the simulator lacks: the published model
// has already refused those that EC2 lacks.
func matches(filters []filter, of attributes) (bool, error) {
	all := true
	for _, f := range filters {
		have, ok := of(f.name)
		if !ok {
			return false, unsupportedFilter(f.name)
		}
		all = all && slices.ContainsFunc(f.values, func(pattern string) bool {
			return slices.ContainsFunc(have, func(value string) bool { return wildcard(pattern, value) })
		})
	}
	return all, nil
}

// sift returns the items that pass the filters.
func sift[T any](items []T, filters []filter, of func(T) attributes) ([]T, error) {
	if len(filters) == 0 {
		return items, nil
	}
	var kept []T
	for _, item := range items {
		ok, err := matches(filters, of(item))
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

// tagged adds the tag filters, which all resources share, to a resource's attributes.
func tagged(tags map[string]string, of attributes) attributes {
	return func(name string) ([]string, bool) {
		switch key, isTag := strings.CutPrefix(name, "tag:"); {
		case isTag:
			if value, ok := tags[key]; ok {
				return []string{value}, true
			}
			return nil, true
		case name == "tag-key":
			return slices.Collect(maps.Keys(tags)), true
		case name == "tag-value":
			return slices.Collect(maps.Values(tags)), true
		}
		return of(name)
	}
}

// oneOf returns attributes with one value each.
func oneOf(values map[string]string) attributes {
	return func(name string) ([]string, bool) {
		v, ok := values[name]
		return []string{v}, ok
	}
}

// byID returns the items with the requested ids, or all if no id is requested. It fails for an id that does not exist.
func byID[T any](items []T, id func(T) string, asked []string, notFound func(id string) error) ([]T, error) {
	if len(asked) == 0 {
		return items, nil
	}
	var found []T
	for _, want := range asked {
		at := slices.IndexFunc(items, func(item T) bool { return id(item) == want })
		if at < 0 {
			return nil, notFound(want)
		}
		found = append(found, items[at])
	}
	return found, nil
}

// wildcard reports whether value matches an EC2 filter pattern.
func wildcard(pattern, value string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			rest := strings.TrimLeft(pattern, "*")
			for i := 0; i <= len(value); i++ {
				if wildcard(rest, value[i:]) {
					return true
				}
			}
			return false
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if value == "" || pattern[0] != value[0] {
				return false
			}
		default:
			if value == "" || pattern[0] != '?' && pattern[0] != value[0] {
				return false
			}
		}
		pattern, value = pattern[1:], value[1:]
	}
	return value == ""
}
