package ec2sim

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// jsonValue checks a value of a JSON request against its shape.
func (m modelCheck) jsonValue(path string, value any, s *shape) error {
	if s == nil || value == nil {
		return nil
	}
	wrong := func() error { return refuse("SerializationException", "%s is not a %s", path, s.Type) }
	switch s.Type {
	case "structure":
		object, ok := value.(map[string]any)
		if !ok {
			return wrong()
		}
		return m.jsonObject(path, object, s)
	case "list":
		items, ok := value.([]any)
		if !ok {
			return wrong()
		}
		for i, item := range items {
			if err := m.jsonValue(join(path, strconv.Itoa(i)), item, m.service.Shapes[s.Member.Shape]); err != nil {
				return err
			}
		}
		return m.within(path, float64(len(items)), s)
	case "map":
		entries, ok := value.(map[string]any)
		if !ok {
			return wrong()
		}
		return m.jsonMap(path, entries, s)
	case "string":
		text, ok := value.(string)
		if !ok {
			return wrong()
		}
		return m.text(path, text, s)
	case "integer", "long":
		n, ok := value.(float64)
		if !ok || n != math.Trunc(n) {
			return wrong()
		}
		return m.within(path, n, s)
	case "boolean":
		if _, ok := value.(bool); !ok {
			return wrong()
		}
	}
	return nil
}

func (m modelCheck) jsonMap(path string, entries map[string]any, s *shape) error {
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if err := m.jsonValue(join(path, key), key, m.service.Shapes[s.Key]); err != nil {
			return err
		}
		if err := m.jsonValue(join(path, key), entries[key], m.service.Shapes[s.Value]); err != nil {
			return err
		}
	}
	return m.within(path, float64(len(entries)), s)
}

func (m modelCheck) jsonObject(path string, object map[string]any, s *shape) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		member := s.Members[key]
		if member == nil {
			return m.unknown(join(path, key))
		}
		if err := m.jsonValue(join(path, key), object[key], m.service.Shapes[member.Shape]); err != nil {
			return err
		}
	}
	for _, name := range s.Required {
		if object[name] == nil && s.Members[name].Location == "" {
			return m.missing(join(path, name))
		}
	}
	return nil
}
