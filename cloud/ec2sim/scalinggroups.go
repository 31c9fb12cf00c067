package ec2sim

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// scalingGroup is an Auto Scaling group.
type scalingGroup struct {
	Name      string
	Min, Max  int
	Desired   int
	Subnets   []string
	Tags      []scalingTag
	CreatedAt time.Time
	// Template and Mixed are the launch template and the mixed instances policy as the request had them, by dotted keys.
	Template map[string]string `json:",omitempty"`
	Mixed    map[string]string `json:",omitempty"`
}

type scalingTag struct {
	Key, Value string
	AtLaunch   bool
}

// scalingGroups is the account's EC2 Auto Scaling service. Groups that EKS makes have instances (nodegroups.go), others none.
type scalingGroups struct {
	*table[scalingGroup]
	account   *account
	templates *launchTemplates
}

// create handles CreateAutoScalingGroup.
func (s *scalingGroups) create(c *call) (any, error) {
	var n numbers
	g := &scalingGroup{
		Name: c.form.str("AutoScalingGroupName"), Min: n.read(c.form, "MinSize"), Max: n.read(c.form, "MaxSize"),
		Subnets: strings.FieldsFunc(c.form.str("VPCZoneIdentifier"), func(r rune) bool { return r == ',' || r == ' ' }), CreatedAt: c.at,
	}
	g.Desired = g.Min
	if c.form.has("DesiredCapacity") {
		g.Desired = n.read(c.form, "DesiredCapacity")
	}
	if n.err != nil {
		return nil, n.err
	}
	for _, item := range c.form.items("Tags") {
		item.str("ResourceId")
		item.str("ResourceType")
		g.Tags = append(g.Tags, scalingTag{item.str("Key"), item.str("Value"), item.str("PropagateAtLaunch") == "true"})
	}
	g.Template, g.Mixed = kept(c.form.sub("LaunchTemplate")), kept(c.form.sub("MixedInstancesPolicy"))
	switch {
	case s.rows[g.Name] != nil:
		return nil, refuse("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", g.Name)
	case g.Template == nil && g.Mixed == nil:
		return nil, refuse("ValidationError", "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
	case g.Desired < g.Min || g.Desired > g.Max:
		return nil, refuse("ValidationError", "Desired capacity:%d must be between the specified min size:%d and max size:%d", g.Desired, g.Min, g.Max)
	case g.Desired > 0:
		return nil, unsupported(c, "DesiredCapacity")
	}
	ref := c.form.sub("LaunchTemplate")
	if ref == nil {
		ref = c.form.sub("MixedInstancesPolicy").sub("LaunchTemplate").sub("LaunchTemplateSpecification")
	}
	if _, _, err := s.templates.forLaunch(ref); err != nil {
		return nil, refuse("ValidationError", "You must use a valid fully-formed launch template. %s", asAPIError(err).message)
	}
	for _, id := range g.Subnets {
		if s.account.subnet(id) == nil {
			return nil, refuse("ValidationError", "The subnet ID '%s' does not exist", id)
		}
	}
	s.put(g.Name, g)
	return struct{}{}, nil
}

// kept returns a parameter and everything below it by dotted keys, and counts it as read.
func kept(p *params) map[string]string {
	if p == nil {
		return nil
	}
	var read func(*params)
	read = func(p *params) {
		p.read = true
		for _, child := range p.children {
			read(child)
		}
	}
	read(p)
	return p.flat()
}

// keptXML renders kept parameters as the Query protocol does in answers: the items of lists are elements named member.
type keptXML map[string]string

func (k keptXML) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	form := map[string][]string{}
	for key, value := range k {
		form[key] = []string{value}
	}
	return encodeParams(e, start, parseParams(form))
}

func encodeParams(e *xml.Encoder, start xml.StartElement, p *params) error {
	if len(p.children) == 0 {
		return e.EncodeElement(p.value, start)
	}
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, key := range sortedKeys(p.children) {
		if key != "member" {
			if err := encodeParams(e, xml.StartElement{Name: xml.Name{Local: key}}, p.children[key]); err != nil {
				return err
			}
			continue
		}
		items := p.children[key].children
		numbers := sortedKeys(items)
		slices.SortFunc(numbers, func(a, b string) int {
			left, _ := strconv.Atoi(a) // the model check has refused what is no number
			right, _ := strconv.Atoi(b)
			return cmp.Compare(left, right)
		})
		for _, number := range numbers {
			if err := encodeParams(e, xml.StartElement{Name: xml.Name{Local: "member"}}, items[number]); err != nil {
				return err
			}
		}
	}
	return e.EncodeToken(start.End())
}

type scalingTagXML struct {
	Key, Value        string
	PropagateAtLaunch bool
	ResourceID        string `xml:"ResourceId"`
	ResourceType      string
}

type scalingGroupXML struct {
	AutoScalingGroupName string
	ARN                  string   `xml:"AutoScalingGroupARN"`
	Template             *keptXML `xml:"LaunchTemplate,omitempty"`
	Mixed                *keptXML `xml:"MixedInstancesPolicy,omitempty"`
	MinSize, MaxSize     int
	DesiredCapacity      int
	DefaultCooldown      int
	AvailabilityZones    []string `xml:"AvailabilityZones>member"`
	HealthCheckType      string
	CreatedTime          string
	VPCZoneIdentifier    string
	Tags                 []scalingTagXML `xml:"Tags>member,omitempty"`
	TerminationPolicies  []string        `xml:"TerminationPolicies>member"`
}

type scalingGroupsXML struct {
	Groups    []scalingGroupXML `xml:"AutoScalingGroups>member"`
	NextToken string            `xml:",omitempty"`
}

// maxScalingGroups is how many groups a page has at most (API reference, "DescribeAutoScalingGroups").
const maxScalingGroups = 100

// describe handles DescribeAutoScalingGroups.
func (s *scalingGroups) describe(c *call) (any, error) {
	size, err := c.form.integer("MaxRecords", maxScalingGroups/2)
	if err != nil {
		return nil, err
	}
	names := c.form.strings("AutoScalingGroupNames")
	found := slices.DeleteFunc(s.sorted(), func(g *scalingGroup) bool { return len(names) > 0 && !slices.Contains(names, g.Name) })
	for _, filter := range c.form.items("Filters") {
		name, values := filter.str("Name"), filter.strings("Values")
		if !strings.HasPrefix(name, "tag:") && name != "tag-key" && name != "tag-value" {
			return nil, refuse("ValidationError", "Invalid filter name: %s", name)
		}
		found = slices.DeleteFunc(found, func(g *scalingGroup) bool { return !g.passes(name, values) })
	}
	page, next, err := paginate(found, func(g *scalingGroup) string { return g.Name }, c.form.str("NextToken"), min(size, maxScalingGroups))
	if err != nil {
		return nil, err
	}
	out := scalingGroupsXML{NextToken: next}
	for _, g := range page {
		out.Groups = append(out.Groups, s.xml(g))
	}
	return out, nil
}

// passes reports whether a group passes a filter (API reference, "DescribeAutoScalingGroups": tag-key, tag-value, tag:<key>).
func (g *scalingGroup) passes(name string, values []string) bool {
	key := strings.TrimPrefix(name, "tag:")
	return slices.ContainsFunc(g.Tags, func(t scalingTag) bool {
		switch name {
		case "tag-key":
			return slices.Contains(values, t.Key)
		case "tag-value":
			return slices.Contains(values, t.Value)
		}
		return t.Key == key && slices.Contains(values, t.Value)
	})
}

func (s *scalingGroups) xml(g *scalingGroup) scalingGroupXML {
	out := scalingGroupXML{
		AutoScalingGroupName: g.Name, ARN: s.account.arn("autoscaling", "autoScalingGroup:00000000-0000-4000-8000-000000000000:autoScalingGroupName/"+g.Name),
		MinSize: g.Min, MaxSize: g.Max, DesiredCapacity: g.Desired, DefaultCooldown: 300, HealthCheckType: "EC2", CreatedTime: iamTime(g.CreatedAt),
		VPCZoneIdentifier: strings.Join(g.Subnets, ","), TerminationPolicies: []string{"Default"},
	}
	for _, id := range g.Subnets {
		if n := s.account.subnet(id); n != nil && !slices.Contains(out.AvailabilityZones, n.Zone) {
			out.AvailabilityZones = append(out.AvailabilityZones, n.Zone)
		}
	}
	if g.Template != nil {
		out.Template = (*keptXML)(&g.Template)
	}
	if g.Mixed != nil {
		out.Mixed = (*keptXML)(&g.Mixed)
	}
	for _, tag := range g.Tags {
		out.Tags = append(out.Tags, scalingTagXML{tag.Key, tag.Value, tag.AtLaunch, g.Name, "auto-scaling-group"})
	}
	return out
}

// needs returns the permissions a call needs. Describe calls of this service have no resource types.
func (s *scalingGroups) needs(c *call) []policy.Request {
	if strings.HasPrefix(c.action, "Describe") {
		return []policy.Request{{Action: "autoscaling:" + c.action, Resource: "*"}}
	}
	return []policy.Request{{Action: "autoscaling:" + c.action,
		Resource: s.account.arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/"+c.form.str("AutoScalingGroupName"))}}
}
