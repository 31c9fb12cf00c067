package ec2sim

import (
	"slices"
	"time"
)

// allGroups are the security groups of the account: the seeded ones, and those that were made.
func (s *Server) allGroups() []*securityGroup {
	return append(slices.Clone(s.account.groups), s.ownGroups.sorted()...)
}

func (s *Server) group(id string) *securityGroup {
	if g := s.ownGroups.rows[id]; g != nil {
		return g
	}
	return s.account.group(id)
}

// launchGroup is a group for a launch, which learns of new ones late.
func (s *Server) launchGroup(id string) *securityGroup {
	g := s.group(id)
	if g == nil || s.late(s.faults().GroupLag, g.CreatedAt) {
		return nil
	}
	return g
}

// late says whether something that was made at a moment is not known yet, with a lag.
func (s *Server) late(lag Duration, made time.Time) bool {
	return lag > 0 && s.now().Before(made.Add(time.Duration(lag)))
}

type groupAnswerXML struct {
	ID   string   `xml:"groupId"`
	ARN  string   `xml:"securityGroupArn"`
	Tags []tagXML `xml:"tagSet>item,omitempty"`
}

func createSecurityGroup(s *Server, c *call) (any, error) {
	p := c.form
	name, vpc := p.str("GroupName"), p.str("VpcId")
	if vpc != "" && vpc != vpcID {
		return nil, refuse("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpc)
	}
	if slices.ContainsFunc(s.allGroups(), func(g *securityGroup) bool { return g.Name == name }) {
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
	s.ownGroups.put(g.ID, g)
	return groupAnswerXML{g.ID, s.account.arn("ec2", "security-group/"+g.ID), tagsXML(g.Tags)}, nil
}

type deleteGroupXML struct {
	Return bool   `xml:"return"`
	ID     string `xml:"groupId"`
}

// deleteSecurityGroup deletes a group that was made; the seeded ones are the cluster's.
func deleteSecurityGroup(s *Server, c *call) (any, error) {
	id := c.form.str("GroupId")
	g := s.ownGroups.rows[id]
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
	s.ownGroups.del(id)
	s.tags.del(id)
	return deleteGroupXML{true, id}, nil
}
