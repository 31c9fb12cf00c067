package ec2sim

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// instanceProfile is an IAM instance profile. Any role can be added to it, except those of the fault NoRoles.
type instanceProfile struct {
	Name      string
	Path      string
	ID        string
	Role      string
	CreatedAt time.Time
	Tags      map[string]string
}

// profileARN returns the ARN of an instance profile, given its name with its path.
func (a *account) profileARN(name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:instance-profile%s", a.partition(), accountID, name)
}

// roleARN returns the ARN of a role, given its name with or without its path.
func (a *account) roleARN(name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:role/%s", a.partition(), accountID, strings.TrimPrefix(name, "/"))
}

// creator returns the ARN of the user who creates everything in the account.
func (a *account) creator() string {
	return fmt.Sprintf("arn:%s:iam::%s:user/tenon", a.partition(), accountID)
}

type iamTagXML struct {
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type instanceProfileXML struct {
	Path      string      `xml:"Path"`
	Name      string      `xml:"InstanceProfileName"`
	ID        string      `xml:"InstanceProfileId"`
	ARN       string      `xml:"Arn"`
	CreatedAt string      `xml:"CreateDate"`
	Roles     []roleXML   `xml:"Roles>member"`
	Tags      []iamTagXML `xml:"Tags>member"`
}

// iamTime formats an instant as IAM does, in whole seconds.
func iamTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// iamID derives the unique id of an IAM resource from its ARN.
func iamID(prefix, arn string) string {
	sum := sha256.Sum256([]byte(arn))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:17]
}

func (a *account) profileXML(p *instanceProfile) instanceProfileXML {
	x := instanceProfileXML{Path: p.Path, Name: p.Name, ID: p.ID, ARN: a.profileARN(p.Path + p.Name), CreatedAt: iamTime(p.CreatedAt)}
	if p.Role != "" {
		x.Roles = []roleXML{a.roleXML(p.Role)}
	}
	for _, key := range sortedKeys(p.Tags) {
		x.Tags = append(x.Tags, iamTagXML{key, p.Tags[key]})
	}
	return x
}

type profileAnswerXML struct {
	Profile instanceProfileXML `xml:"InstanceProfile"`
}

func iamRefuse(status int, code, message string) error { return &apiError{status, code, message} }

// iam is the account's IAM service.
type iam struct {
	account  *account
	faults   *injector
	profiles *table[instanceProfile]
	roles    *table[role]
}

func (m *iam) find(c *call) (*instanceProfile, error) {
	name := c.form.str("InstanceProfileName")
	if name == "" {
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "InstanceProfileName must have length greater than or equal to 1")
	}
	p := m.profiles.rows[name]
	if p == nil {
		return nil, iamRefuse(http.StatusNotFound, "NoSuchEntity", "Instance Profile "+name+" cannot be found.")
	}
	return p, nil
}

func (m *iam) createProfile(c *call) (any, error) {
	name, path := c.form.str("InstanceProfileName"), c.form.str("Path")
	setDefault(&path, "/")
	switch {
	case name == "" || len(name) > 128:
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "InstanceProfileName must be between 1 and 128 characters")
	case !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/") || len(path) > 512:
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "Path must begin and end with /")
	case m.profiles.rows[name] != nil:
		return nil, iamRefuse(http.StatusConflict, "EntityAlreadyExists", "Instance Profile "+name+" already exists.")
	}
	p := &instanceProfile{Name: name, Path: path, CreatedAt: c.at, Tags: iamTags(c)}
	p.ID = iamID("AIPA", m.account.profileARN(p.Path+p.Name))
	m.profiles.put(name, p)
	return profileAnswerXML{m.account.profileXML(p)}, nil
}

func iamTags(c *call) map[string]string {
	tags := map[string]string{}
	for _, t := range c.form.items("Tags") {
		tags[t.str("Key")] = t.str("Value")
	}
	return tags
}

func (m *iam) getProfile(c *call) (any, error) {
	p, err := m.find(c)
	if err != nil {
		return nil, err
	}
	return profileAnswerXML{m.account.profileXML(p)}, nil
}

func (m *iam) addRole(c *call) (any, error) {
	p, err := m.find(c)
	if err != nil {
		return nil, err
	}
	role := c.form.str("RoleName")
	switch {
	case role == "" || strings.Contains(role, "/"):
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "RoleName "+role+" is not a role name")
	case !m.hasRole(role):
		return nil, noSuchRole(role)
	case p.Role != "":
		return nil, iamRefuse(http.StatusConflict, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.Role = role
	m.profiles.put(p.Name, p)
	return struct{}{}, nil
}

func (m *iam) removeRole(c *call) (any, error) {
	p, err := m.find(c)
	if err != nil {
		return nil, err
	}
	if role := c.form.str("RoleName"); role != p.Role {
		return nil, iamRefuse(http.StatusNotFound, "NoSuchEntity", "The role "+role+" is not in the instance profile "+p.Name)
	}
	p.Role = ""
	m.profiles.put(p.Name, p)
	return struct{}{}, nil
}

func (m *iam) deleteProfile(c *call) (any, error) {
	p, err := m.find(c)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, iamRefuse(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	m.profiles.del(p.Name)
	return struct{}{}, nil
}

func (m *iam) tagProfile(c *call) (any, error) {
	p, err := m.find(c)
	if err != nil {
		return nil, err
	}
	for k, v := range iamTags(c) {
		p.Tags[k] = v
	}
	m.profiles.put(p.Name, p)
	return struct{}{}, nil
}

// forLaunch returns the ARN of the instance profile that a launch names, or "" if it names none.
func (m *iam) forLaunch(spec *launchSpec) (string, error) {
	name := spec.ProfileName
	if spec.ProfileARN != "" {
		name = spec.ProfileARN[strings.LastIndexByte(spec.ProfileARN, '/')+1:]
	}
	if name == "" {
		return "", nil
	}
	p := m.profiles.rows[name]
	switch {
	case p == nil && spec.ProfileARN != "":
		return "", invalidValue("Value (%s) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN", spec.ProfileARN)
	case p == nil || m.faults.late(m.faults.current().ProfileLag, p.CreatedAt):
		return "", invalidValue("Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", name)
	case p.Role == "":
		return "", invalidValue("IAM Instance Profile \"%s\" has no associated IAM Roles", m.account.profileARN(p.Path+p.Name))
	}
	return m.account.profileARN(p.Path + p.Name), nil
}

type listProfilesXML struct {
	Profiles  []instanceProfileXML `xml:"InstanceProfiles>member"`
	Truncated bool                 `xml:"IsTruncated"`
	Marker    string               `xml:"Marker,omitempty"`
}

func (m *iam) listProfiles(c *call) (any, error) {
	prefix := c.form.str("PathPrefix")
	found := slices.DeleteFunc(m.profiles.sorted(), func(p *instanceProfile) bool { return !strings.HasPrefix(p.Path, prefix) })
	size, err := c.form.integer("MaxItems", 100)
	if err != nil {
		return nil, err
	}
	page, next, err := paginate(found, func(p *instanceProfile) string { return p.Name }, c.form.str("Marker"), size)
	if err != nil {
		return nil, err
	}
	out := listProfilesXML{Truncated: next != "", Marker: next}
	for _, p := range page {
		x := m.account.profileXML(p)
		x.Tags = nil // lists omit tags
		out.Profiles = append(out.Profiles, x)
	}
	return out, nil
}

// passRole returns the permission needed to pass a role to instances.
func (a *account) passRole(role string) policy.Request {
	service := "ec2.amazonaws.com"
	if a.partition() == "aws-cn" {
		service += ".cn" // "AWS service endpoints in China" (iam:PassedToService of the China regions)
	}
	return policy.Request{Action: "iam:PassRole", Resource: a.roleARN(role), Keys: map[string][]string{"iam:PassedToService": {service}}}
}

// needs returns the permissions an IAM call needs. It names profiles by their ARN, including the path. Creating a profile
// with tags also tags it; the tags then count as the profile's own, because otherwise the policies that Karpenter
// publishes, which check aws:ResourceTag there, could not work. "AddRoleToInstanceProfile requires iam:PassRole" (IAM API
// reference); the role is passed to EC2.
func (m *iam) needs(c *call) []policy.Request {
	name, path := c.form.str("InstanceProfileName"), c.form.str("Path")
	setDefault(&path, "/")
	need := policy.Request{Action: "iam:" + c.action, Resource: "*"}
	p := m.profiles.rows[name]
	if p != nil {
		need.Resource, need.Keys = m.account.profileARN(p.Path+p.Name), onResourceTags("iam", p.Tags)
	} else if name != "" {
		need.Resource = m.account.profileARN(path + name)
	}
	switch c.action {
	case "CreateInstanceProfile":
		tags := iamTags(c)
		need.Resource, need.Keys = m.account.profileARN(path+name), onRequestTags(tags)
		if len(tags) == 0 {
			return []policy.Request{need}
		}
		tag := policy.Request{Action: "iam:TagInstanceProfile", Resource: need.Resource, Keys: onRequestTags(tags)}
		tagKeys(tag.Keys, "aws:ResourceTag/", tags)
		return []policy.Request{need, tag}
	case "TagInstanceProfile":
		if need.Keys == nil {
			need.Keys = map[string][]string{}
		}
		for key, values := range onRequestTags(iamTags(c)) {
			need.Keys[key] = values
		}
	case "AddRoleToInstanceProfile":
		return []policy.Request{need, m.account.passRole(c.form.str("RoleName"))}
	case "GetRole":
		need.Resource = m.account.roleARN(c.form.str("RoleName"))
		// Service-linked roles have paths (IAM User Guide, "Create a service-linked role").
		if c.form.str("RoleName") == "AWSServiceRoleForEC2Spot" {
			need.Resource = m.account.roleARN("aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot")
		}
	}
	return []policy.Request{need}
}
