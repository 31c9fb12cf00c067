package ec2sim

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// structure checks the parameters below a name against a structure. further are parameters of the protocol itself.
func (m modelCheck) structure(path string, p *params, s *shape, further ...string) error {
	known := make(map[string]*memberShape, len(s.Members))
	for name, member := range s.Members {
		known[m.wireName(name, member)] = member
	}
	for _, key := range parameterNames(p) {
		member := known[key]
		if member == nil {
			if slices.Contains(further, key) {
				continue
			}
			return m.unknown(join(path, key))
		}
		if len(member.Filters) > 0 {
			for _, item := range p.items(key) {
				if err := m.filterName(item.str("Name"), member.Filters); err != nil {
					return err
				}
			}
		}
		if err := m.parameter(join(path, key), p.sub(key), m.service.Shapes[member.Shape]); err != nil {
			return err
		}
	}
	for _, name := range s.Required {
		if wire := m.wireName(name, s.Members[name]); !p.has(wire) {
			return m.missing(join(path, wire))
		}
	}
	return nil
}

// parameter checks a parameter and everything below it.
func (m modelCheck) parameter(path string, p *params, s *shape) error {
	if s == nil {
		return nil
	}
	switch s.Type {
	case "structure":
		if p.value != "" {
			return m.unknown(path)
		}
		return m.structure(path, p, s)
	case "list":
		return m.list(path, p, s)
	}
	if len(p.children) > 0 {
		return m.unknown(join(path, parameterNames(p)[0]))
	}
	switch s.Type {
	case "string":
		return m.text(path, p.value, s)
	case "integer", "long":
		n, err := strconv.ParseInt(p.value, 10, 64)
		if err != nil {
			return m.invalid("Value (%s) for parameter %s is invalid. Expected an integer.", p.value, path)
		}
		return m.within(path, float64(n), s)
	case "float", "double":
		n, err := strconv.ParseFloat(p.value, 64)
		if err != nil {
			return m.invalid("Value (%s) for parameter %s is invalid. Expected a number.", p.value, path)
		}
		return m.within(path, n, s)
	case "boolean":
		if !slices.Contains([]string{"true", "false"}, strings.ToLower(p.value)) {
			return m.invalid("Value (%s) for parameter %s is invalid. Expected true or false.", p.value, path)
		}
	case "timestamp":
		if _, err := time.Parse(time.RFC3339, p.value); err != nil {
			return m.invalid("Value (%s) for parameter %s is invalid. Expected a time such as 2026-01-31T12:00:00Z.", p.value, path)
		}
	}
	return nil
}

// list checks the numbered items of a list. In the Query protocol they are below a level "member", or one that the list names,
// unless the list is flattened; in EC2's protocol there is no such level.
func (m modelCheck) list(path string, p *params, s *shape) error {
	if m.service.Protocol == "query" && !s.Flattened {
		level := s.itemLevel()
		for _, key := range parameterNames(p) {
			if key != level {
				return m.unknown(join(path, key))
			}
		}
		path, p = path+"."+level, p.sub(level)
	}
	keys := parameterNames(p)
	for _, key := range keys {
		if n, err := strconv.Atoi(key); err != nil || n < 1 {
			return m.unknown(join(path, key))
		}
		if err := m.parameter(join(path, key), p.sub(key), m.service.Shapes[s.Member.Shape]); err != nil {
			return err
		}
	}
	return m.within(path, float64(len(keys)), s)
}

// itemLevel returns the name of the level above the items of a list in the Query protocol.
func (s *shape) itemLevel() string { return cmp.Or(s.Member.LocationName, "member") }

// wireName returns a member's name on the wire. EC2's protocol uses the query name, else the capitalised location name,
// else the member's own (Smithy's documentation, "AWS EC2 query protocol"); the Query protocol the location name, else
// the member's own.
func (m modelCheck) wireName(name string, member *memberShape) string {
	switch {
	case m.service.Protocol == "ec2" && member.QueryName != "":
		return member.QueryName
	case member.LocationName == "":
		return name
	case m.service.Protocol == "ec2":
		return strings.ToUpper(member.LocationName[:1]) + member.LocationName[1:]
	}
	return member.LocationName
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// parameterNames returns the keys directly below a parameter, sorted.
func parameterNames(p *params) []string {
	if p == nil {
		return nil
	}
	return sortedKeys(p.children)
}
