package ec2sim

import (
	"fmt"
	"strings"
	"time"
)

type ssmParameter struct {
	Name             string
	Type             string
	Value            string
	Version          int64
	LastModifiedDate float64
	ARN              string
	DataType         string
}

// parameters are Amazon's public parameters, one per image line and release, holding the image id, and the account's own.
func (s *Server) parameters() map[string]ssmParameter {
	all := map[string]ssmParameter{}
	for _, im := range s.images {
		for _, name := range im.Parameters {
			all[name] = ssmParameter{
				Name: name, Type: "String", Value: im.ID, Version: 1, LastModifiedDate: float64(im.Created.Unix()),
				ARN: s.account.publicARN("ssm", "parameter"+name), DataType: "text",
			}
		}
	}
	for name, p := range s.ownParameters.rows {
		all[name] = *p
	}
	return all
}

// SetParameter writes a parameter of the account's own. Names below /aws are Amazon's (Systems Manager User Guide, "Create a
// Parameter Store parameter using the AWS CLI").
func (s *Server) SetParameter(name, value string) error {
	if bare := strings.ToLower(strings.TrimPrefix(name, "/")); bare == "" || strings.HasPrefix(bare, "aws") || strings.HasPrefix(bare, "ssm") || value == "" {
		return fmt.Errorf("parameter %q = %q: a name may not begin with aws or ssm, and a value may not be empty", name, value)
	}
	return s.locked(func(now time.Time) error {
		s.putParameter(name, value, now)
		return nil
	})
}

func (s *Server) putParameter(name, value string, now time.Time) {
	p := ssmParameter{
		Name: name, Type: "String", Value: value, Version: 1, LastModifiedDate: float64(now.Unix()), DataType: "text",
		ARN: s.account.arn("ssm", "parameter/"+strings.TrimPrefix(name, "/")),
	}
	if old := s.ownParameters.rows[name]; old != nil {
		p.Version = old.Version + 1
	}
	s.ownParameters.put(name, &p)
}

// parameter finds a parameter by its name or its ARN (API reference, GetParameter, Name).
func (s *Server) parameter(name string) (ssmParameter, bool) {
	all := s.parameters()
	if p, ok := all[name]; ok {
		return p, true
	}
	for _, p := range all {
		if p.ARN == name {
			return p, true
		}
	}
	return ssmParameter{}, false
}

func getParameter(s *Server, c *call) (any, error) {
	in, err := decodeJSON[struct{ Name string }](c)
	if err != nil {
		return nil, err
	}
	p, ok := s.parameter(in.Name)
	if !ok {
		return nil, refuse("ParameterNotFound", "")
	}
	return map[string]any{"Parameter": p}, nil
}

func getParameters(s *Server, c *call) (any, error) {
	in, err := decodeJSON[struct{ Names []string }](c)
	if err != nil {
		return nil, err
	}
	if len(in.Names) < 1 || len(in.Names) > 10 {
		return nil, refuse("ValidationException", "1 validation error detected: Value at 'names' failed to satisfy constraint: Member must have length less than or equal to 10")
	}
	all := s.parameters()
	found, missing := []ssmParameter{}, []string{}
	for _, name := range in.Names {
		if p, ok := all[name]; ok {
			found = append(found, p)
		} else {
			missing = append(missing, name)
		}
	}
	return map[string]any{"Parameters": found, "InvalidParameters": missing}, nil
}

func getParametersByPath(s *Server, c *call) (any, error) {
	in, err := decodeJSON[struct {
		Path       string
		Recursive  bool
		MaxResults int
		NextToken  string
	}](c)
	if err != nil {
		return nil, err
	}
	setDefault(&in.MaxResults, 10)
	if in.MaxResults < 1 || in.MaxResults > 10 {
		return nil, refuse("ValidationException", "1 validation error detected: Value at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 10")
	}
	prefix := strings.TrimSuffix(in.Path, "/") + "/"
	found := []ssmParameter{}
	for name, p := range s.parameters() {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && (in.Recursive || !strings.Contains(rest, "/")) {
			found = append(found, p)
		}
	}
	page, next, err := paginate(found, func(p ssmParameter) string { return p.Name }, in.NextToken, in.MaxResults)
	if err != nil {
		return nil, refuse("InvalidNextToken", "The specified token isn't valid.")
	}
	out := map[string]any{"Parameters": page}
	if next != "" {
		out["NextToken"] = next
	}
	return out, nil
}
