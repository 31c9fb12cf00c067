package ec2sim

import (
	"slices"
	"strconv"
	"strings"
)

// launchTemplates are the account's launch templates, by id.
type launchTemplates struct {
	*table[launchTemplate]
	account *account
	faults  *injector
	tokens  *clientTokens
}

// find returns the template whose id or name p contains, and a version of it.
func (lt *launchTemplates) find(p *params, version string) (*launchTemplate, *templateVersion, error) {
	id, name := p.str("LaunchTemplateId"), p.str("LaunchTemplateName")
	t := lt.rows[id]
	switch {
	case id != "" && name != "":
		return nil, nil, refuse("InvalidParameterCombination", "Specify either a launch template id or a name, not both")
	case id == "" && name == "":
		return nil, nil, missingParameter("LaunchTemplateId or LaunchTemplateName")
	case id != "" && t == nil:
		return nil, nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	case name != "":
		if t = lt.byName(name); t == nil {
			return nil, nil, refuse("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", name)
		}
	}
	v := t.version(version)
	if v == nil {
		return nil, nil, refuse("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version %s for the launch template with ID %s.", version, t.ID)
	}
	return t, v, nil
}

// forLaunch returns a template for a launch. A launch sees a new template later than other calls do: EC2's API is
// eventually consistent (developer guide, "Eventual consistency in the Amazon EC2 API").
func (lt *launchTemplates) forLaunch(p *params) (*launchTemplate, *templateVersion, error) {
	t, v, err := lt.find(p, p.str("Version"))
	if err == nil && lt.faults.late(lt.faults.current().TemplateLag, t.CreatedAt) {
		return nil, nil, refuse("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", t.Name)
	}
	return t, v, err
}

func (lt *launchTemplates) byName(name string) *launchTemplate {
	for _, t := range lt.rows {
		if t.Name == name {
			return t
		}
	}
	return nil
}

type templateAnswerXML struct {
	Template launchTemplateXML `xml:"launchTemplate"`
}

func (lt *launchTemplates) create(c *call) (any, error) {
	return lt.tokens.once(c, func() (any, error) {
		name := c.form.str("LaunchTemplateName")
		if len(name) < 3 || len(name) > 128 {
			return nil, refuse("InvalidLaunchTemplateName.MalformedException", "The launch template name '%s' must be between 3 and 128 characters", name)
		}
		if !c.form.has("LaunchTemplateData") {
			return nil, missingParameter("LaunchTemplateData")
		}
		if lt.byName(name) != nil {
			return nil, refuse("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		spec, err := parseLaunchSpec(c.form.sub("LaunchTemplateData"))
		if err != nil {
			return nil, err
		}
		// Karpenter leaves the parameter out in the isolated regions of the USA, where EC2 does not have it (its
		// pkg/providers/amifamily/resolver.go). How EC2 refuses it there is not published.
		if spec.Metadata != nil && spec.Metadata.IPv6 != "" && strings.HasPrefix(lt.account.region, "us-iso") {
			return nil, refuse("UnknownParameter", "The parameter HttpProtocolIpv6 is not recognized")
		}
		tags, err := parseTagSpecifications(c.form)
		if err != nil {
			return nil, err
		}
		if *orFalse(c.form.flag("DryRun")) {
			return nil, errDryRun
		}
		t := &launchTemplate{ID: newID("lt"), Name: name, CreatedAt: c.at, Tags: tags["launch-template"], Default: 1}
		t.Versions = []*templateVersion{{Number: 1, Description: c.form.str("VersionDescription"), CreatedAt: c.at, Spec: spec}}
		lt.put(t.ID, t)
		return templateAnswerXML{t.xml(lt.account.creator())}, nil
	})
}

type describeTemplatesXML struct {
	Templates []launchTemplateXML `xml:"launchTemplates>item"`
	Next      string              `xml:"nextToken,omitempty"`
}

func (lt *launchTemplates) describe(c *call) (any, error) {
	ids, names := c.form.strings("LaunchTemplateId"), c.form.strings("LaunchTemplateName")
	for _, id := range ids {
		if lt.rows[id] == nil {
			return nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
		}
	}
	for _, name := range names {
		if lt.byName(name) == nil {
			return nil, refuse("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
		}
	}
	found := slices.DeleteFunc(lt.sorted(), func(t *launchTemplate) bool {
		return (ids != nil || names != nil) && !slices.Contains(ids, t.ID) && !slices.Contains(names, t.Name)
	})
	found, err := sift(found, parseFilters(c.form), func(t *launchTemplate) attributes {
		return tagged(t.Tags, func(name string) ([]string, bool) {
			switch name {
			case "launch-template-name":
				return []string{t.Name}, true
			case "create-time":
				return []string{timestamp(t.CreatedAt)}, true
			}
			return nil, false
		})
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 1, 200, func(t *launchTemplate) string { return t.ID })
	if err != nil {
		return nil, err
	}
	out := describeTemplatesXML{Next: next}
	for _, t := range page {
		out.Templates = append(out.Templates, t.xml(lt.account.creator()))
	}
	return out, nil
}

type templateVersionXML struct {
	ID          string        `xml:"launchTemplateId"`
	Name        string        `xml:"launchTemplateName"`
	Number      int           `xml:"versionNumber"`
	Description string        `xml:"versionDescription,omitempty"`
	CreatedAt   string        `xml:"createTime"`
	CreatedBy   string        `xml:"createdBy"`
	Default     bool          `xml:"defaultVersion"`
	Data        launchSpecXML `xml:"launchTemplateData"`
}

type describeVersionsXML struct {
	Versions []templateVersionXML `xml:"launchTemplateVersionSet>item"`
	Next     string               `xml:"nextToken,omitempty"`
}

func (lt *launchTemplates) describeVersions(c *call) (any, error) {
	asked := c.form.strings("LaunchTemplateVersion")
	templates := lt.sorted()
	if c.form.has("LaunchTemplateId") || c.form.has("LaunchTemplateName") {
		t, _, err := lt.find(c.form, "")
		if err != nil {
			return nil, err
		}
		templates = []*launchTemplate{t}
	}
	var all []templateVersionXML
	for _, t := range templates {
		for _, v := range t.Versions {
			if asked != nil && !slices.ContainsFunc(asked, func(name string) bool { return t.version(name) == v }) {
				continue
			}
			all = append(all, templateVersionXML{
				t.ID, t.Name, v.Number, v.Description, timestamp(v.CreatedAt), lt.account.creator(), v.Number == t.Default, v.Spec.xml(),
			})
		}
	}
	page, next, err := pageOf(c.form, all, 1, 200, func(v templateVersionXML) string {
		return v.ID + "/" + strconv.Itoa(1_000_000_000-v.Number)
	})
	return describeVersionsXML{page, next}, err
}

func (lt *launchTemplates) delete(c *call) (any, error) {
	t, _, err := lt.find(c.form, "")
	if err != nil {
		return nil, err
	}
	if *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	lt.del(t.ID)
	return templateAnswerXML{t.xml(lt.account.creator())}, nil
}
