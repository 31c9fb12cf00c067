package ec2sim

import (
	"net/http"
	"slices"
	"strings"
)

// role is a role made with CreateRole. All other roles exist as well, except those of the fault NoRoles. The simulator
// does not evaluate what a role allows.
type role struct{ Name, Path, Policy string }

func (m *iam) hasRole(name string) bool {
	missing := slices.ContainsFunc(m.faults.current().NoRoles, func(pattern string) bool { return wildcard(pattern, name) })
	return !missing || m.roles.rows[name] != nil
}

func noSuchRole(name string) error {
	return iamRefuse(http.StatusNotFound, "NoSuchEntity", "The role with name "+name+" cannot be found.")
}

func (m *iam) createRole(c *call) (any, error) {
	name, path := c.form.str("RoleName"), c.form.str("Path")
	setDefault(&path, "/")
	switch {
	case !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/"):
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "Path must begin and end with /")
	case m.roles.rows[name] != nil:
		return nil, iamRefuse(http.StatusConflict, "EntityAlreadyExists", "Role with name "+name+" already exists.")
	}
	m.roles.put(name, &role{name, path, c.form.str("AssumeRolePolicyDocument")})
	return roleAnswerXML{m.account.roleXML(name)}, nil
}

// deleteRole fails if the role is in an instance profile (IAM API reference, DeleteRole).
func (m *iam) deleteRole(c *call) (any, error) {
	name := c.form.str("RoleName")
	for _, p := range m.profiles.rows {
		if p.Role == name {
			return nil, iamRefuse(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
		}
	}
	if m.roles.rows[name] == nil {
		return nil, noSuchRole(name)
	}
	m.roles.del(name)
	return struct{}{}, nil
}

type roleXML struct {
	Path      string `xml:"Path"`
	Name      string `xml:"RoleName"`
	ID        string `xml:"RoleId"`
	ARN       string `xml:"Arn"`
	CreatedAt string `xml:"CreateDate"`
	Policy    string `xml:"AssumeRolePolicyDocument"`
}

func (a *account) roleXML(name string) roleXML {
	arn := a.roleARN(name)
	return roleXML{
		Path: "/", Name: name, ID: iamID("AROA", arn), ARN: arn, CreatedAt: iamTime(imageReleases[0]),
		Policy: "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%22ec2.amazonaws.com%22%7D%2C%22Action%22%3A%22sts%3AAssumeRole%22%7D%5D%7D",
	}
}

type roleAnswerXML struct {
	Role roleXML `xml:"Role"`
}

func (m *iam) getRole(c *call) (any, error) {
	name := c.form.str("RoleName")
	if name == "" {
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "RoleName must have length greater than or equal to 1")
	}
	return roleAnswerXML{m.account.roleXML(name)}, nil
}
