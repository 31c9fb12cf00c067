package ec2sim

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// Policies are the identity policies of principals, by access key. A principal that is not listed may do everything.
type Policies map[string][]*policy.Document

// LoadPolicies reads the policies in a directory: KEY/NAME.json is a policy of the principal with the access key KEY.
func LoadPolicies(dir string) (Policies, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("policies %s: %w", dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("policies %s: there is no ACCESS-KEY/NAME.json", dir)
	}
	policies := Policies{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("policies: %w", err)
		}
		document, err := policy.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", file, err)
		}
		key := filepath.Base(filepath.Dir(file))
		policies[key] = append(policies[key], document)
	}
	return policies, nil
}

// authorizer checks calls against the policies of their principals.
type authorizer struct {
	policies Policies
	account  *account
	needs    map[string]func(c *call) []policy.Request // the permissions a call needs, by service
}

// authorize checks everything a call needs against the caller's policies, and refuses the call with its service's error
// code. If the call names a resource that does not exist, the refusal is left to the handler.
func (a *authorizer) authorize(c *call) error {
	documents, limited := a.policies[c.accessKey]
	if !limited || c.service == "sts" { // "No permissions are required to perform this operation" (GetCallerIdentity)
		return nil
	}
	for _, need := range a.needsOf(c) {
		switch policy.Decide(documents, need) {
		case policy.Allow:
			continue
		case policy.ExplicitDeny:
			return a.unauthorized(c, need, "with an explicit deny in an identity-based policy")
		case policy.ImplicitDeny:
			return a.unauthorized(c, need, "because no identity-based policy allows the "+need.Action+" action")
		}
	}
	return nil
}

// unauthorized returns the refusal in the service's wording. EC2's message contains a code that only
// sts:DecodeAuthorizationMessage can read; here the request's condition keys take its place.
func (a *authorizer) unauthorized(c *call, need policy.Request, why string) error {
	text := fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s %s", a.account.creator(), need.Action, need.Resource, why)
	switch c.service {
	case "ec2":
		return &apiError{http.StatusForbidden, "UnauthorizedOperation", fmt.Sprintf(
			"You are not authorized to perform this operation. %s. Encoded authorization failure message: %v", text, need.Keys)}
	case "iam", "sqs", "autoscaling":
		return &apiError{http.StatusForbidden, "AccessDenied", text}
	}
	return &apiError{http.StatusBadRequest, "AccessDeniedException", text}
}

// needsOf returns the permissions a call needs, according to the Service Authorization Reference ("Actions, resources,
// and condition keys for AWS services"). Read actions of EC2 have no resource types.
func (a *authorizer) needsOf(c *call) []policy.Request {
	var needs []policy.Request
	if of := a.needs[c.service]; of != nil {
		needs = of(c)
	} else {
		needs = []policy.Request{{Action: c.service + ":" + c.action, Resource: "*"}}
	}
	for i := range needs {
		if needs[i].Keys == nil {
			needs[i].Keys = map[string][]string{}
		}
		needs[i].Keys["aws:RequestedRegion"] = []string{c.region}
		if c.service == "ec2" {
			needs[i].Keys["ec2:Region"] = []string{c.region}
		}
	}
	return needs
}

// tagKeys adds tags to condition keys, with a prefix such as aws:RequestTag/ or aws:ResourceTag/.
func tagKeys(keys map[string][]string, prefix string, tags map[string]string) {
	for key, value := range tags {
		keys[prefix+key] = []string{value}
	}
}

// onRequestTags returns the condition keys of a resource that is created with tags.
func onRequestTags(tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	tagKeys(keys, "aws:RequestTag/", tags)
	if len(tags) > 0 {
		keys["aws:TagKeys"] = sortedKeys(tags)
	}
	return keys
}

// onResourceTags returns the condition keys of an existing resource.
func onResourceTags(service string, tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	tagKeys(keys, "aws:ResourceTag/", tags)
	tagKeys(keys, service+":ResourceTag/", tags)
	return keys
}

// validate refuses a principal without an access key.
func (p Policies) validate() error {
	if _, ok := p[""]; ok {
		return errors.New("policies of a principal without an access key")
	}
	return nil
}
