package ec2sim

import (
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
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

// ssm is the account's Systems Manager, with its parameters.
type ssm struct {
	account *account
	images  []*image // the images of Amazon's parameters
	own     *table[ssmParameter]
}

// all returns Amazon's public parameters, whose values are image ids, and the account's own parameters.
func (s *ssm) all() map[string]ssmParameter {
	all := map[string]ssmParameter{}
	for _, im := range s.images {
		for _, name := range im.Parameters {
			all[name] = ssmParameter{
				Name: name, Type: "String", Value: im.ID, Version: 1, LastModifiedDate: float64(im.Created.Unix()),
				ARN: s.account.publicARN("ssm", "parameter"+name), DataType: "text",
			}
		}
	}
	for name, p := range s.own.rows {
		all[name] = *p
	}
	return all
}

// put writes one of the account's own parameters.
func (s *ssm) put(name, value string, now time.Time) {
	p := ssmParameter{
		Name: name, Type: "String", Value: value, Version: 1, LastModifiedDate: float64(now.Unix()), DataType: "text",
		ARN: s.account.arn("ssm", "parameter/"+strings.TrimPrefix(name, "/")),
	}
	if old := s.own.rows[name]; old != nil {
		p.Version = old.Version + 1
	}
	s.own.put(name, &p)
}

// find returns a parameter by its name or its ARN (API reference, GetParameter, Name).
func (s *ssm) find(name string) (ssmParameter, bool) {
	all := s.all()
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

func (s *ssm) getParameter(c *call) (any, error) {
	in, err := decodeJSON[struct{ Name string }](c)
	if err != nil {
		return nil, err
	}
	p, ok := s.find(in.Name)
	if !ok {
		return nil, refuse("ParameterNotFound", "")
	}
	return map[string]any{"Parameter": p}, nil
}

func (s *ssm) getParameters(c *call) (any, error) {
	in, err := decodeJSON[struct{ Names []string }](c)
	if err != nil {
		return nil, err
	}
	if len(in.Names) < 1 || len(in.Names) > 10 {
		return nil, refuse("ValidationException", "1 validation error detected: Value at 'names' failed to satisfy constraint: Member must have length less than or equal to 10")
	}
	all := s.all()
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

func (s *ssm) getParametersByPath(c *call) (any, error) {
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
	for name, p := range s.all() {
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

// needs returns the permissions an SSM call needs. Parameters below /aws are Amazon's and belong to no account.
func (s *ssm) needs(c *call) []policy.Request {
	in, err := peekJSON[struct {
		Name, Path string
		Names      []string
	}](c)
	if err != nil {
		return nil // the handler reports what is wrong with the request
	}
	var needs []policy.Request
	for _, name := range append(in.Names, in.Name+in.Path) {
		if name == "" {
			continue
		}
		arn := s.account.arn("ssm", "parameter/"+strings.TrimPrefix(name, "/"))
		if strings.HasPrefix(name, "/aws/") {
			arn = s.account.publicARN("ssm", "parameter"+name)
		}
		if strings.HasPrefix(name, "arn:") {
			arn = name
		}
		needs = append(needs, policy.Request{Action: "ssm:" + c.action, Resource: arn})
	}
	return needs
}
