package ec2sim

import "time"

// tagSet holds tags of resources that are not a row of their own table: the seeded subnets and security groups, and images.
type tagSet struct {
	Tags   map[string]string
	Before map[string]string `json:",omitempty"` // what Describe calls show until SeenAt
	SeenAt time.Time         `json:",omitzero"`
}

// shown are the tags that Describe calls show at an instant.
func (t *tagSet) shown(now time.Time) map[string]string {
	if now.Before(t.SeenAt) {
		return t.Before
	}
	return t.Tags
}

// tagSets are the tags of resources that were tagged after they were made and that have no table of their own.
type tagSets struct {
	*table[tagSet]
	now    func() time.Time
	faults *injector
}

// shownOf are what Describe calls show of a resource's tags, which had others at first.
func (t *tagSets) shownOf(id string, first map[string]string) map[string]string {
	if changed := t.rows[id]; changed != nil {
		return changed.shown(t.now())
	}
	return first
}

// set changes tags that Describe calls learn of with the lag of tags.
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
