package ec2sim

import "slices"

// securityGroups are the seeded security groups and those created later.
type securityGroups struct {
	account   *account
	faults    *injector
	own       *table[securityGroup]
	tags      *tagSets
	instances *table[instance]
}

// all returns the security groups of the account.
func (s *securityGroups) all() []*securityGroup {
	return append(slices.Clone(s.account.groups), s.own.sorted()...)
}

// find returns the group with an id, or nil.
func (s *securityGroups) find(id string) *securityGroup {
	if g := s.own.rows[id]; g != nil {
		return g
	}
	return s.account.group(id)
}

// known returns the group with an id as a launch sees it: nil while a new group is within its lag.
func (s *securityGroups) known(id string) *securityGroup {
	g := s.find(id)
	if g == nil || s.faults.late(s.faults.current().GroupLag, g.CreatedAt) {
		return nil
	}
	return g
}

// forLaunch returns the ids of the groups of a launch: those that it names, or the VPC's default group.
func (s *securityGroups) forLaunch(spec *launchSpec) ([]string, error) {
	ids := slices.Clone(spec.GroupIDs)
	for _, name := range spec.GroupNames {
		groups := s.all()
		at := slices.IndexFunc(groups, func(g *securityGroup) bool { return g.Name == name })
		if at < 0 {
			return nil, refuse("InvalidGroup.NotFound", "The security group '%s' does not exist in VPC '%s'", name, vpcID)
		}
		ids = append(ids, groups[at].ID)
	}
	for _, n := range spec.Interfaces {
		for _, id := range n.Groups {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		if s.known(id) == nil {
			return nil, refuse("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	if ids == nil {
		ids = []string{s.account.groups[1].ID}
	}
	return ids, nil
}

type groupAnswerXML struct {
	ID   string   `xml:"groupId"`
	ARN  string   `xml:"securityGroupArn"`
	Tags []tagXML `xml:"tagSet>item,omitempty"`
}

func (s *securityGroups) create(c *call) (any, error) {
	p := c.form
	name, vpc := p.str("GroupName"), p.str("VpcId")
	if vpc != "" && vpc != vpcID {
		return nil, refuse("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpc)
	}
	if slices.ContainsFunc(s.all(), func(g *securityGroup) bool { return g.Name == name }) {
		return nil, refuse("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", name, vpcID)
	}
	tags, err := parseTagSpecifications(p)
	if err != nil {
		return nil, err
	}
	g := &securityGroup{ID: newID("sg"), Name: name, Description: p.str("GroupDescription"), Tags: tags["security-group"], CreatedAt: c.at}
	if *orFalse(p.flag("DryRun")) {
		return nil, errDryRun
	}
	s.own.put(g.ID, g)
	return groupAnswerXML{g.ID, s.account.arn("ec2", "security-group/"+g.ID), tagsXML(g.Tags)}, nil
}

type deleteGroupXML struct {
	Return bool   `xml:"return"`
	ID     string `xml:"groupId"`
}

// delete deletes a created group. The seeded groups cannot be deleted.
func (s *securityGroups) delete(c *call) (any, error) {
	id := c.form.str("GroupId")
	g := s.own.rows[id]
	if g == nil {
		return nil, refuse("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	for _, i := range s.instances.rows {
		if !i.ended() && (slices.Contains(i.Groups, id) || slices.ContainsFunc(i.Interfaces, func(n networkInterface) bool { return slices.Contains(n.Groups, id) })) {
			return nil, refuse("DependencyViolation", "resource %s has a dependent object", id)
		}
	}
	if *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	s.own.del(id)
	s.tags.del(id)
	return deleteGroupXML{true, id}, nil
}

type groupXML struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

func (s *securityGroups) xml(ids []string) []groupXML {
	var out []groupXML
	for _, id := range ids {
		if g := s.find(id); g != nil {
			out = append(out, groupXML{g.ID, g.Name})
		}
	}
	return out
}

type securityGroupXML struct {
	ID          string   `xml:"groupId"`
	ARN         string   `xml:"securityGroupArn"`
	Name        string   `xml:"groupName"`
	Description string   `xml:"groupDescription"`
	OwnerID     string   `xml:"ownerId"`
	VPCID       string   `xml:"vpcId"`
	Tags        []tagXML `xml:"tagSet>item,omitempty"`
}

type describeGroupsXML struct {
	Groups []securityGroupXML `xml:"securityGroupInfo>item"`
	Next   string             `xml:"nextToken,omitempty"`
}

func (s *securityGroups) describe(c *call) (any, error) {
	notFound := func(id string) error {
		return refuse("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	found, err := byID(s.all(), func(g *securityGroup) string { return g.ID }, c.form.strings("GroupId"), notFound)
	if err != nil {
		return nil, err
	}
	if names := c.form.strings("GroupName"); len(names) > 0 {
		if found, err = byID(found, func(g *securityGroup) string { return g.Name }, names, notFound); err != nil {
			return nil, err
		}
	}
	found, err = sift(found, parseFilters(c.form), func(g *securityGroup) attributes {
		return tagged(s.tags.shownOf(g.ID, g.Tags), oneOf(map[string]string{
			"group-id": g.ID, "group-name": g.Name, "vpc-id": vpcID, "owner-id": accountID, "description": g.Description,
		}))
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 5, 1000, func(g *securityGroup) string { return g.ID })
	if err != nil {
		return nil, err
	}
	out := describeGroupsXML{Next: next}
	for _, g := range page {
		out.Groups = append(out.Groups, securityGroupXML{
			ID: g.ID, ARN: s.account.arn("ec2", "security-group/"+g.ID), Name: g.Name, Description: g.Description,
			OwnerID: accountID, VPCID: vpcID, Tags: tagsXML(s.tags.shownOf(g.ID, g.Tags)),
		})
	}
	return out, nil
}
