package ec2sim

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// instanceProfile is an IAM instance profile. Roles are not kept: any role exists.
type instanceProfile struct {
	Name      string
	Path      string
	ID        string
	Role      string
	CreatedAt time.Time
	Tags      map[string]string
}

// profileARN is the ARN of an instance profile, whose name is given with its path.
func (a *account) profileARN(name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:instance-profile%s", a.partition(), accountID, name)
}

// roleARN is the ARN of a role, whose name may be given with its path.
func (a *account) roleARN(name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:role/%s", a.partition(), accountID, strings.TrimPrefix(name, "/"))
}

// creator is who makes everything here.
func (a *account) creator() string {
	return fmt.Sprintf("arn:%s:iam::%s:user/tenon", a.partition(), accountID)
}

type iamTagXML struct {
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type roleXML struct {
	Path      string `xml:"Path"`
	Name      string `xml:"RoleName"`
	ID        string `xml:"RoleId"`
	ARN       string `xml:"Arn"`
	CreatedAt string `xml:"CreateDate"`
	Policy    string `xml:"AssumeRolePolicyDocument"`
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

// iamTime prints an instant like IAM, which has whole seconds.
func iamTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// iamID makes the unique id of an IAM resource from its ARN.
func iamID(prefix, arn string) string {
	sum := sha256.Sum256([]byte(arn))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:17]
}

func (a *account) roleXML(name string) roleXML {
	arn := a.roleARN(name)
	return roleXML{
		Path: "/", Name: name, ID: iamID("AROA", arn), ARN: arn, CreatedAt: iamTime(imageReleases[0]),
		Policy: "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%22ec2.amazonaws.com%22%7D%2C%22Action%22%3A%22sts%3AAssumeRole%22%7D%5D%7D",
	}
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

func (s *Server) findProfile(c *call) (*instanceProfile, error) {
	name := c.form.str("InstanceProfileName")
	if name == "" {
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "InstanceProfileName must have length greater than or equal to 1")
	}
	p := s.profiles.rows[name]
	if p == nil {
		return nil, iamRefuse(http.StatusNotFound, "NoSuchEntity", "Instance Profile "+name+" cannot be found.")
	}
	return p, nil
}

func createInstanceProfile(s *Server, c *call) (any, error) {
	name, path := c.form.str("InstanceProfileName"), c.form.str("Path")
	setDefault(&path, "/")
	switch {
	case name == "" || len(name) > 128:
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "InstanceProfileName must be between 1 and 128 characters")
	case !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/") || len(path) > 512:
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "Path must begin and end with /")
	case s.profiles.rows[name] != nil:
		return nil, iamRefuse(http.StatusConflict, "EntityAlreadyExists", "Instance Profile "+name+" already exists.")
	}
	p := &instanceProfile{Name: name, Path: path, CreatedAt: c.at, Tags: iamTags(c)}
	p.ID = iamID("AIPA", s.account.profileARN(p.Path+p.Name))
	s.profiles.put(name, p)
	return profileAnswerXML{s.account.profileXML(p)}, nil
}

func iamTags(c *call) map[string]string {
	tags := map[string]string{}
	for _, t := range c.form.items("Tags") {
		tags[t.str("Key")] = t.str("Value")
	}
	return tags
}

func getInstanceProfile(s *Server, c *call) (any, error) {
	p, err := s.findProfile(c)
	if err != nil {
		return nil, err
	}
	return profileAnswerXML{s.account.profileXML(p)}, nil
}

func addRoleToInstanceProfile(s *Server, c *call) (any, error) {
	p, err := s.findProfile(c)
	if err != nil {
		return nil, err
	}
	role := c.form.str("RoleName")
	switch {
	case role == "" || strings.Contains(role, "/"):
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "RoleName "+role+" is not a role name")
	case !s.hasRole(role):
		return nil, noSuchRole(role)
	case p.Role != "":
		return nil, iamRefuse(http.StatusConflict, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.Role = role
	s.profiles.put(p.Name, p)
	return struct{}{}, nil
}

func removeRoleFromInstanceProfile(s *Server, c *call) (any, error) {
	p, err := s.findProfile(c)
	if err != nil {
		return nil, err
	}
	if role := c.form.str("RoleName"); role != p.Role {
		return nil, iamRefuse(http.StatusNotFound, "NoSuchEntity", "The role "+role+" is not in the instance profile "+p.Name)
	}
	p.Role = ""
	s.profiles.put(p.Name, p)
	return struct{}{}, nil
}

func deleteInstanceProfile(s *Server, c *call) (any, error) {
	p, err := s.findProfile(c)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, iamRefuse(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	s.profiles.del(p.Name)
	return struct{}{}, nil
}

func tagInstanceProfile(s *Server, c *call) (any, error) {
	p, err := s.findProfile(c)
	if err != nil {
		return nil, err
	}
	for k, v := range iamTags(c) {
		p.Tags[k] = v
	}
	s.profiles.put(p.Name, p)
	return struct{}{}, nil
}

type listProfilesXML struct {
	Profiles  []instanceProfileXML `xml:"InstanceProfiles>member"`
	Truncated bool                 `xml:"IsTruncated"`
	Marker    string               `xml:"Marker,omitempty"`
}

func listInstanceProfiles(s *Server, c *call) (any, error) {
	prefix := c.form.str("PathPrefix")
	found := slices.DeleteFunc(s.profiles.sorted(), func(p *instanceProfile) bool { return !strings.HasPrefix(p.Path, prefix) })
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
		x := s.account.profileXML(p)
		x.Tags = nil // lists do not show tags
		out.Profiles = append(out.Profiles, x)
	}
	return out, nil
}

type roleAnswerXML struct {
	Role roleXML `xml:"Role"`
}

func getRole(s *Server, c *call) (any, error) {
	name := c.form.str("RoleName")
	if name == "" {
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "RoleName must have length greater than or equal to 1")
	}
	return roleAnswerXML{s.account.roleXML(name)}, nil
}

type callerXML struct {
	ARN     string `xml:"Arn"`
	UserID  string `xml:"UserId"`
	Account string `xml:"Account"`
}

func getCallerIdentity(s *Server, _ *call) (any, error) {
	return callerXML{s.account.creator(), iamID("AIDA", s.account.creator()), accountID}, nil
}
