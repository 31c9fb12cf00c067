package rules

import (
	"slices"
)

// HostCap is a bound on the pods of a group on one new node: on those that have this bound or a lower one.
type HostCap struct {
	Group *Group
	Most  int
}

// Caps are the bounds that a shape's rules set to its own kind.
func (r *Rules) Caps() []HostCap {
	var caps []HostCap
	for i := range r.Spread {
		if s := &r.Spread[i]; s.Host >= 0 && s.Self == 1 {
			caps = append(caps, HostCap{s.Group, s.MaxSkew})
		}
	}
	for _, g := range r.Apart {
		if g.Host >= 0 && slices.Contains(r.Joins, g) {
			caps = append(caps, HostCap{g, 1})
		}
	}
	return caps
}
