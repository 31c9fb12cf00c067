package ec2sim

import "time"

// tagSet holds the tags of a subnet, security group or image that was tagged after its creation.
type tagSet struct {
	Tags   map[string]string
	Before map[string]string `json:",omitempty"` // what Describe calls show until SeenAt
	SeenAt time.Time         `json:",omitzero"`
}

// shown returns the tags that Describe calls show at an instant.
func (t *tagSet) shown(now time.Time) map[string]string {
	if now.Before(t.SeenAt) {
		return t.Before
	}
	return t.Tags
}

// tagSets are the tag sets of resources, by resource id.
type tagSets struct {
	*table[tagSet]
	now    func() time.Time
	faults *injector
}

// shownOf returns the tags of a resource that Describe calls show. first are its initial tags.
func (t *tagSets) shownOf(id string, first map[string]string) map[string]string {
	if changed := t.rows[id]; changed != nil {
		return changed.shown(t.now())
	}
	return first
}

// set changes the tags of a resource, which Describe calls see after TagLag. had are its tags so far.
func (t *tagSets) set(id string, had, tags map[string]string) {
	changed := &tagSet{Tags: tags}
	if lag := time.Duration(t.faults.current().TagLag); lag > 0 {
		if old := t.rows[id]; old != nil {
			had = old.shown(t.now())
		}
		changed.Before, changed.SeenAt = had, t.now().Add(lag)
	}
	t.put(id, changed)
}
