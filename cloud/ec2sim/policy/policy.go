// Package policy evaluates IAM identity policies: whether a principal with given documents may perform an action on a
// resource. It is pure and strict: parsing fails on everything the package does not know (an element of a statement, a
// condition operator, a condition key, a policy variable), so that nothing is allowed because it was not understood.
//
// The rules are those of the IAM User Guide: "Policy evaluation logic", "IAM JSON policy elements: Condition operators",
// "Multivalued context keys" and "Amazon Resource Names (ARNs) and wildcards".
package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Document is one parsed policy.
type Document struct{ statements []statement }

type statement struct {
	deny      bool
	actions   []string
	resources []string
	// conditions must all hold.
	conditions []condition
}

// Request asks for permission to perform one action on one resource.
type Request struct {
	// Action is the service prefix and the operation, such as ec2:CreateFleet.
	Action string
	// Resource is an ARN, or * for actions that have no resource types.
	Resource string
	// Keys are the condition keys of the request with their values, such as aws:RequestTag/team. The case of their names
	// does not matter, as in IAM.
	Keys map[string][]string
}

// Decision is the result of evaluating a request.
type Decision int

// The decisions. A request that no statement matches is denied implicitly.
const (
	ImplicitDeny Decision = iota
	ExplicitDeny
	Allow
)

// words is a JSON value that may be one string or several.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		var one string
		err := json.Unmarshal(data, &one)
		*w = words{one}
		return err
	}
	return json.Unmarshal(data, (*[]string)(w))
}

type statementJSON struct {
	Sid       string
	Effect    string
	Action    words
	Resource  words
	Condition map[string]map[string]words
}

// Parse parses an identity policy. It fails on everything it could not evaluate.
func Parse(data []byte) (*Document, error) {
	var in struct {
		Version   string
		Statement []statementJSON
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	if in.Version != "2012-10-17" {
		return nil, fmt.Errorf("policy version %q is not 2012-10-17", in.Version)
	}
	out := &Document{}
	for i := range in.Statement {
		s, err := parseStatement(&in.Statement[i])
		if err != nil {
			return nil, fmt.Errorf("statement %d (%s): %w", i+1, in.Statement[i].Sid, err)
		}
		out.statements = append(out.statements, s)
	}
	return out, nil
}

// ParseAll parses the policies of one principal, given by name.
func ParseAll(policies map[string][]byte) ([]*Document, error) {
	all := make([]*Document, 0, len(policies))
	for name, data := range policies {
		document, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		all = append(all, document)
	}
	return all, nil
}

func parseStatement(in *statementJSON) (statement, error) {
	s := statement{deny: in.Effect == "Deny", actions: in.Action, resources: in.Resource}
	if in.Effect != "Allow" && in.Effect != "Deny" {
		return s, fmt.Errorf("effect %q is neither Allow nor Deny", in.Effect)
	}
	if len(in.Action) == 0 || len(in.Resource) == 0 {
		return s, fmt.Errorf("a statement needs actions and resources")
	}
	for _, action := range in.Action {
		if action != "*" && !strings.Contains(action, ":") {
			return s, fmt.Errorf("action %q has no service", action)
		}
	}
	for _, resource := range in.Resource {
		if resource != "*" && len(strings.SplitN(resource, ":", arnParts)) != arnParts {
			return s, fmt.Errorf("resource %q is neither * nor an ARN", resource)
		}
		if err := noVariable(resource); err != nil {
			return s, err
		}
	}
	for operator, keys := range in.Condition {
		for key, values := range keys {
			c, err := parseCondition(operator, key, values)
			if err != nil {
				return s, err
			}
			s.conditions = append(s.conditions, c)
		}
	}
	return s, nil
}

// Decide evaluates a request: any matching Deny wins, then any matching Allow.
func Decide(documents []*Document, r Request) Decision {
	keys := make(map[string][]string, len(r.Keys))
	for key, values := range r.Keys {
		keys[strings.ToLower(key)] = values
	}
	decision := ImplicitDeny
	for _, d := range documents {
		for i := range d.statements {
			s := &d.statements[i]
			if !s.matches(r, keys) {
				continue
			}
			if s.deny {
				return ExplicitDeny
			}
			decision = Allow
		}
	}
	return decision
}

func (s *statement) matches(r Request, keys map[string][]string) bool {
	return anyOf(s.actions, func(pattern string) bool { return matchWildcard(strings.ToLower(pattern), strings.ToLower(r.Action)) }) &&
		anyOf(s.resources, func(pattern string) bool { return matchARN(pattern, r.Resource) }) &&
		!anyOf(s.conditions, func(c condition) bool { return !c.holds(keys) })
}
