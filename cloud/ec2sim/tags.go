package ec2sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// EC2's limits on tags.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// tagSet holds tags of resources that are not a row of their own table: the seeded subnets and security groups, and images.
type tagSet struct {
	Tags   map[string]string
	Before map[string]string `json:",omitempty"` // what Describe calls show until SeenAt
	SeenAt time.Time         `json:",omitzero"`
}

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

// parseTags reads Tag.N with EC2's checks.
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

// taggable is a resource found by its id: its tags now, and how to store changed ones.
type taggable struct {
	kind string
	tags map[string]string
	set  func(tags map[string]string)
}

// taggable finds a resource that CreateTags may name.
func (s *Server) taggable(c *call, id string) (*taggable, error) {
	kind, _, _ := strings.Cut(id, "-")
	switch kind {
	case "i":
		i := s.instances.rows[id]
		if i == nil || !i.visible(c.at) {
			return nil, instanceNotFound(id)
		}
		return &taggable{"instance", i.Tags, func(t map[string]string) {
			i.TagsBefore, i.TagsSeenAt = i.shownTags(c.at), c.at.Add(time.Duration(s.faults().TagLag))
			i.Tags = t
			s.instances.put(id, i)
		}}, nil
	case "vol", "eni":
		for _, i := range s.instances.rows {
			if i.ended() || !i.visible(c.at) {
				continue
			}
			if slices.ContainsFunc(i.Volumes, func(v volume) bool { return v.ID == id }) {
				return &taggable{"volume", i.VolumeTags, func(t map[string]string) { i.VolumeTags = t; s.instances.put(i.ID, i) }}, nil
			}
			if slices.ContainsFunc(i.Interfaces, func(n networkInterface) bool { return n.ID == id }) {
				return &taggable{"network-interface", i.InterfaceTags, func(t map[string]string) { i.InterfaceTags = t; s.instances.put(i.ID, i) }}, nil
			}
		}
	case "sir":
		for _, i := range s.instances.rows {
			if i.SpotRequest == id {
				return &taggable{"spot-instances-request", i.RequestTags, func(t map[string]string) { i.RequestTags = t; s.instances.put(i.ID, i) }}, nil
			}
		}
	case "lt":
		if t := s.templates.rows[id]; t != nil {
			return &taggable{"launch-template", t.Tags, func(tags map[string]string) { t.Tags = tags; s.templates.put(id, t) }}, nil
		}
	case "ami":
		if im := s.image(id); im != nil && im.visible() {
			return &taggable{"image", s.imageTags(im), func(t map[string]string) { s.setTags(id, im.Tags, t) }}, nil
		}
	case "fleet":
		if f := s.fleets.rows[id]; f != nil {
			return &taggable{"fleet", f.Tags, func(t map[string]string) { f.Tags = t; s.fleets.put(id, f) }}, nil
		}
	case "subnet", "sg":
		if seeded := s.seededTags(id); seeded != nil {
			name := map[string]string{"subnet": "subnet", "sg": "security-group"}[kind]
			return &taggable{name, seeded, func(t map[string]string) { s.setTags(id, seeded, t) }}, nil
		}
	}
	return nil, refuse("InvalidID", "The ID '%s' is not valid", id)
}

// seededTags are the tags of a subnet or security group: the seeded ones, or what CreateTags has made of them.
func (s *Server) seededTags(id string) map[string]string {
	if changed := s.tags.rows[id]; changed != nil {
		return changed.Tags
	}
	if n := s.account.subnet(id); n != nil {
		return n.Tags
	}
	if g := s.group(id); g != nil {
		return g.Tags
	}
	return nil
}

// setTags changes tags that Describe calls learn of with the lag of tags.
func (s *Server) setTags(id string, had, tags map[string]string) {
	changed := &tagSet{Tags: tags}
	if lag := time.Duration(s.faults().TagLag); lag > 0 {
		if old := s.tags.rows[id]; old != nil {
			had = old.shown(s.now())
		}
		changed.Before, changed.SeenAt = had, s.now().Add(lag)
	}
	s.tags.put(id, changed)
}

// shown are the tags that Describe calls show at an instant.
func (t *tagSet) shown(now time.Time) map[string]string {
	if now.Before(t.SeenAt) {
		return t.Before
	}
	return t.Tags
}

// shownTags are what Describe calls show of a subnet's or security group's tags.
func (s *Server) shownTags(id string) map[string]string {
	if changed := s.tags.rows[id]; changed != nil {
		return changed.shown(s.now())
	}
	return s.seededTags(id)
}

func createTags(s *Server, c *call) (any, error) {
	ids, tags := c.form.strings("ResourceId"), c.form.items("Tag")
	if len(ids) == 0 || len(tags) == 0 {
		return nil, missingParameter("ResourceId, Tag")
	}
	added, err := parseTags(c.form)
	if err != nil {
		return nil, err
	}
	return returnTrue, s.retag(c, ids, func(have map[string]string) (map[string]string, error) {
		merged := maps.Clone(have)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, added)
		if len(merged) > maxTags {
			return nil, refuse("TagLimitExceeded", "The maximum number of tags for a resource has been reached")
		}
		return merged, nil
	})
}

func deleteTags(s *Server, c *call) (any, error) {
	ids := c.form.strings("ResourceId")
	if len(ids) == 0 {
		return nil, missingParameter("ResourceId")
	}
	return returnTrue, s.retag(c, ids, func(have map[string]string) (map[string]string, error) {
		left := map[string]string{}
		for k, v := range have {
			if !deletesTag(c.form, k, v) {
				left[k] = v
			}
		}
		return left, nil
	})
}

// deletesTag applies DeleteTags' rule: no tags named means all of them (but EC2's own), a key without a value means any
// value.
func deletesTag(p *params, key, value string) bool {
	if !p.has("Tag") {
		return !strings.HasPrefix(key, "aws:")
	}
	return slices.ContainsFunc(p.items("Tag"), func(t *params) bool {
		return t.str("Key") == key && (!t.has("Value") || t.str("Value") == value)
	})
}

// retag changes all the resources or none.
func (s *Server) retag(c *call, ids []string, change func(map[string]string) (map[string]string, error)) error {
	var apply []func()
	for _, id := range ids {
		r, err := s.taggable(c, id)
		if err != nil {
			return err
		}
		tags, err := change(r.tags)
		if err != nil {
			return err
		}
		apply = append(apply, func() { r.set(tags) })
	}
	if *orFalse(c.form.flag("DryRun")) {
		return errDryRun
	}
	for _, f := range apply {
		f()
	}
	return nil
}

func orFalse(b *bool) *bool { return cmp.Or(b, new(bool)) }

type tagDescriptionXML struct {
	ID    string `xml:"resourceId"`
	Kind  string `xml:"resourceType"`
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type describeTagsXML struct {
	Tags []tagDescriptionXML `xml:"tagSet>item"`
	Next string              `xml:"nextToken,omitempty"`
}

func describeTags(s *Server, c *call) (any, error) {
	var all []tagDescriptionXML
	add := func(id, kind string, tags map[string]string) {
		for k, v := range tags {
			all = append(all, tagDescriptionXML{id, kind, k, v})
		}
	}
	for id, i := range s.instances.rows {
		if !i.visible(c.at) {
			continue
		}
		add(id, "instance", i.shownTags(c.at))
		if !i.ended() {
			for _, v := range i.Volumes {
				add(v.ID, "volume", i.VolumeTags)
			}
			for _, n := range i.Interfaces {
				add(n.ID, "network-interface", i.InterfaceTags)
			}
		}
		if i.SpotRequest != "" {
			add(i.SpotRequest, "spot-instances-request", i.RequestTags)
		}
	}
	for id, t := range s.templates.rows {
		add(id, "launch-template", t.Tags)
	}
	for id, f := range s.fleets.rows {
		add(id, "fleet", f.Tags)
	}
	for _, im := range s.allImages() {
		if im.visible() {
			add(im.ID, "image", s.imageTags(im))
		}
	}
	for _, n := range s.account.subnets {
		add(n.ID, "subnet", s.seededTags(n.ID))
	}
	for _, g := range s.allGroups() {
		add(g.ID, "security-group", s.seededTags(g.ID))
	}
	all, err := sift(all, parseFilters(c.form), func(t tagDescriptionXML) attributes {
		return func(name string) ([]string, bool) {
			switch key, isTag := strings.CutPrefix(name, "tag:"); {
			case isTag:
				if key == t.Key {
					return []string{t.Value}, true
				}
				return nil, true
			}
			value, ok := map[string]string{"key": t.Key, "value": t.Value, "resource-id": t.ID, "resource-type": t.Kind}[name]
			return []string{value}, ok
		}
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, all, 5, 1000, func(t tagDescriptionXML) string { return t.ID + "\x00" + t.Key })
	return describeTagsXML{page, next}, err
}

type returnXML struct {
	Return bool `xml:"return"`
}

var returnTrue = returnXML{true}
