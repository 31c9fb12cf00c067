package ec2sim

import (
	"strconv"
	"time"
)

// launchTemplate is a launch template with its versions, oldest first.
type launchTemplate struct {
	ID        string
	Name      string
	CreatedAt time.Time
	Tags      map[string]string
	Default   int
	Versions  []*templateVersion
}

type templateVersion struct {
	Number      int
	Description string
	CreatedAt   time.Time
	Spec        *launchSpec
}

func (t *launchTemplate) latest() *templateVersion { return t.Versions[len(t.Versions)-1] }

// version returns the version with a number, $Latest or $Default (also ""), or nil.
func (t *launchTemplate) version(name string) *templateVersion {
	switch name {
	case "$Latest":
		return t.latest()
	case "", "$Default":
		name = strconv.Itoa(t.Default)
	}
	for _, v := range t.Versions {
		if versionNumber(v.Number) == name {
			return v
		}
	}
	return nil
}

type launchTemplateXML struct {
	ID        string   `xml:"launchTemplateId"`
	Name      string   `xml:"launchTemplateName"`
	CreatedAt string   `xml:"createTime"`
	CreatedBy string   `xml:"createdBy"`
	Default   int      `xml:"defaultVersionNumber"`
	Latest    int      `xml:"latestVersionNumber"`
	Tags      []tagXML `xml:"tagSet>item,omitempty"`
}

func (t *launchTemplate) xml(creator string) launchTemplateXML {
	return launchTemplateXML{
		t.ID, t.Name, timestamp(t.CreatedAt), creator, t.Default, t.latest().Number, tagsXML(t.Tags),
	}
}

// timestamp formats an instant as EC2 does.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
