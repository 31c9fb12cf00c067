package ec2sim

import "strings"

type ssmParameter struct {
	Name             string
	Type             string
	Value            string
	Version          int64
	LastModifiedDate float64
	ARN              string
	DataType         string
}

// parameters are Amazon's public parameters: one per image line and release, holding the image id.
func (s *Server) parameters() map[string]ssmParameter {
	all := map[string]ssmParameter{}
	for _, im := range s.images {
		for _, name := range im.Parameters {
			all[name] = ssmParameter{
				Name: name, Type: "String", Value: im.ID, Version: 1, LastModifiedDate: float64(im.Created.Unix()),
				ARN: "arn:aws:ssm:" + s.account.region + "::parameter" + name, DataType: "text",
			}
		}
	}
	return all
}

func getParameter(s *Server, c *call) (any, error) {
	in, err := decodeJSON[struct{ Name string }](c)
	if err != nil {
		return nil, err
	}
	p, ok := s.parameters()[in.Name]
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
