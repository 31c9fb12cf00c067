package ec2sim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// taggable is a resource with its current tags and a function that stores changed ones.
type taggable struct {
	kind string
	tags map[string]string
	set  func(tags map[string]string)
}

// tagAPI handles the EC2 actions on tags. Most resources have their tags in their own rows.
type tagAPI struct {
	account   *account
	faults    *injector
	tags      *tagSets
	instances *table[instance]
	templates *launchTemplates
	images    *images
	groups    *securityGroups
	fleets    *table[fleet]

	placements *table[placementGroup]
}

// find returns a resource that CreateTags may name.
func (api *tagAPI) find(c *call, id string) (*taggable, error) {
	kind, _, _ := strings.Cut(id, "-")
	switch kind {
	case "i":
		i := api.instances.rows[id]
		if i == nil || !i.visible(c.at) {
			return nil, instanceNotFound(id)
		}
		return &taggable{"instance", i.Tags, func(t map[string]string) {
			i.TagsBefore, i.TagsSeenAt = i.shownTags(c.at), c.at.Add(time.Duration(api.faults.current().TagLag))
			i.Tags = t
			api.instances.put(id, i)
		}}, nil
	case "vol", "eni":
		for _, i := range api.instances.rows {
			if i.ended() || !i.visible(c.at) {
				continue
			}
			if slices.ContainsFunc(i.Volumes, func(v volume) bool { return v.ID == id }) {
				return &taggable{"volume", i.VolumeTags, func(t map[string]string) { i.VolumeTags = t; api.instances.put(i.ID, i) }}, nil
			}
			if slices.ContainsFunc(i.Interfaces, func(n networkInterface) bool { return n.ID == id }) {
				return &taggable{"network-interface", i.InterfaceTags, func(t map[string]string) { i.InterfaceTags = t; api.instances.put(i.ID, i) }}, nil
			}
		}
	case "sir":
		for _, i := range api.instances.rows {
			if i.SpotRequest == id {
				return &taggable{"spot-instances-request", i.RequestTags, func(t map[string]string) { i.RequestTags = t; api.instances.put(i.ID, i) }}, nil
			}
		}
	case "lt":
		if t := api.templates.rows[id]; t != nil {
			return &taggable{"launch-template", t.Tags, func(tags map[string]string) { t.Tags = tags; api.templates.put(id, t) }}, nil
		}
	case "ami":
		if im := api.images.find(id); im != nil && im.visible() {
			return &taggable{"image", api.images.tagsOf(im), func(t map[string]string) { api.tags.set(id, im.Tags, t) }}, nil
		}
	case "fleet":
		if f := api.fleets.rows[id]; f != nil {
			return &taggable{"fleet", f.Tags, func(t map[string]string) { f.Tags = t; api.fleets.put(id, f) }}, nil
		}
	case "pg":
		if g := api.placements.rows[id]; g != nil {
			return &taggable{"placement-group", g.Tags, func(t map[string]string) { g.Tags = t; api.placements.put(id, g) }}, nil
		}
	case "subnet", "sg":
		if seeded := api.seeded(id); seeded != nil {
			name := map[string]string{"subnet": "subnet", "sg": "security-group"}[kind]
			return &taggable{name, seeded, func(t map[string]string) { api.tags.set(id, seeded, t) }}, nil
		}
	}
	return nil, refuse("InvalidID", "The ID '%s' is not valid", id)
}

// seeded returns the tags of a subnet or security group: its initial ones, or those set by CreateTags and DeleteTags.
func (api *tagAPI) seeded(id string) map[string]string {
	if changed := api.tags.rows[id]; changed != nil {
		return changed.Tags
	}
	if n := api.account.subnet(id); n != nil {
		return n.Tags
	}
	if g := api.groups.find(id); g != nil {
		return g.Tags
	}
	return nil
}

func (api *tagAPI) create(c *call) (any, error) {
	ids, tags := c.form.strings("ResourceId"), c.form.items("Tag")
	if len(ids) == 0 || len(tags) == 0 {
		return nil, missingParameter("ResourceId, Tag")
	}
	added, err := parseTags(c.form)
	if err != nil {
		return nil, err
	}
	return returnTrue, api.change(c, ids, func(have map[string]string) (map[string]string, error) {
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

func (api *tagAPI) delete(c *call) (any, error) {
	ids := c.form.strings("ResourceId")
	if len(ids) == 0 {
		return nil, missingParameter("ResourceId")
	}
	return returnTrue, api.change(c, ids, func(have map[string]string) (map[string]string, error) {
		left := map[string]string{}
		for k, v := range have {
			if !deletesTag(c.form, k, v) {
				left[k] = v
			}
		}
		return left, nil
	})
}

// deletesTag implements DeleteTags' rule: without named tags it deletes all except EC2's own; a key without a value
// matches any value.
func deletesTag(p *params, key, value string) bool {
	if !p.has("Tag") {
		return !strings.HasPrefix(key, "aws:")
	}
	return slices.ContainsFunc(p.items("Tag"), func(t *params) bool {
		return t.str("Key") == key && (!t.has("Value") || t.str("Value") == value)
	})
}

// change changes the tags of all the resources or of none.
func (api *tagAPI) change(c *call, ids []string, to func(map[string]string) (map[string]string, error)) error {
	var apply []func()
	for _, id := range ids {
		r, err := api.find(c, id)
		if err != nil {
			return err
		}
		tags, err := to(r.tags)
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

func (api *tagAPI) describe(c *call) (any, error) {
	var all []tagDescriptionXML
	add := func(id, kind string, tags map[string]string) {
		for k, v := range tags {
			all = append(all, tagDescriptionXML{id, kind, k, v})
		}
	}
	for id, i := range api.instances.rows {
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
	for id, t := range api.templates.rows {
		add(id, "launch-template", t.Tags)
	}
	for id, f := range api.fleets.rows {
		add(id, "fleet", f.Tags)
	}
	for id, g := range api.placements.rows {
		add(id, "placement-group", g.Tags)
	}
	for _, im := range api.images.all() {
		if im.visible() {
			add(im.ID, "image", api.images.tagsOf(im))
		}
	}
	for _, n := range api.account.subnets {
		add(n.ID, "subnet", api.seeded(n.ID))
	}
	for _, g := range api.groups.all() {
		add(g.ID, "security-group", api.seeded(g.ID))
	}
	all, err := sift(all, parseFilters(c.form), func(t tagDescriptionXML) attributes {
		return func(name string) ([]string, bool) {
			if key, isTag := strings.CutPrefix(name, "tag:"); isTag {
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
