package ec2sim

import (
	"net/http"
	"slices"
	"strings"
)

// role is a role that was made. Any other exists as well, but for those of the fault NoRoles: what a role is for is not looked at.
type role struct{ Name, Path, Policy string }

func (s *Server) hasRole(name string) bool {
	missing := slices.ContainsFunc(s.faults().NoRoles, func(pattern string) bool { return wildcard(pattern, name) })
	return !missing || s.roles.rows[name] != nil
}

func noSuchRole(name string) error {
	return iamRefuse(http.StatusNotFound, "NoSuchEntity", "The role with name "+name+" cannot be found.")
}

func createRole(s *Server, c *call) (any, error) {
	name, path := c.form.str("RoleName"), c.form.str("Path")
	setDefault(&path, "/")
	switch {
	case !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/"):
		return nil, iamRefuse(http.StatusBadRequest, "ValidationError", "Path must begin and end with /")
	case s.roles.rows[name] != nil:
		return nil, iamRefuse(http.StatusConflict, "EntityAlreadyExists", "Role with name "+name+" already exists.")
	}
	s.roles.put(name, &role{name, path, c.form.str("AssumeRolePolicyDocument")})
	return roleAnswerXML{s.account.roleXML(name)}, nil
}

// deleteRole needs the role to be in no instance profile (IAM API reference, DeleteRole).
func deleteRole(s *Server, c *call) (any, error) {
	name := c.form.str("RoleName")
	for _, p := range s.profiles.rows {
		if p.Role == name {
			return nil, iamRefuse(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
		}
	}
	if s.roles.rows[name] == nil {
		return nil, noSuchRole(name)
	}
	s.roles.del(name)
	return struct{}{}, nil
}
