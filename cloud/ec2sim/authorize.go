package ec2sim

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// Policies are the identity policies of principals, by access key. A principal that is not listed may do everything.
type Policies map[string][]*policy.Document

// LoadPolicies reads the policies of a directory: KEY/NAME.json is one that the principal with the access key KEY has.
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

// authorize asks the policies of the caller for everything that a call needs, and refuses it with the code of its
// service. What the call names and the account does not have is left to the handler, which says so.
func (s *Server) authorize(c *call) error {
	documents, limited := s.opts.Policies[c.accessKey]
	if !limited || c.service == "sts" { // "No permissions are required to perform this operation" (GetCallerIdentity)
		return nil
	}
	for _, need := range s.needs(c) {
		switch policy.Decide(documents, need) {
		case policy.Allow:
			continue
		case policy.ExplicitDeny:
			return s.unauthorized(c, need, "with an explicit deny in an identity-based policy")
		case policy.ImplicitDeny:
			return s.unauthorized(c, need, "because no identity-based policy allows the "+need.Action+" action")
		}
	}
	return nil
}

// unauthorized is a refusal as the services word it: EC2's has a message in code that only sts:DecodeAuthorizationMessage
// reads, in the place of which ours has the request's condition keys.
func (s *Server) unauthorized(c *call, need policy.Request, why string) error {
	text := fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s %s", s.account.creator(), need.Action, need.Resource, why)
	switch c.service {
	case "ec2":
		return &apiError{http.StatusForbidden, "UnauthorizedOperation", fmt.Sprintf(
			"You are not authorized to perform this operation. %s. Encoded authorization failure message: %v", text, need.Keys)}
	case "iam", "sqs":
		return &apiError{http.StatusForbidden, "AccessDenied", text}
	}
	return &apiError{http.StatusBadRequest, "AccessDeniedException", text}
}

// needs lists what has to be allowed for a call, after the Service Authorization Reference ("Actions, resources, and
// condition keys for AWS services"). A read of EC2 has no resource types.
func (s *Server) needs(c *call) []policy.Request {
	var needs []policy.Request
	switch c.service {
	case "ec2":
		needs = s.ec2Needs(c)
	case "iam":
		needs = s.iamNeeds(c)
	case "sqs":
		needs = s.sqsNeeds(c)
	case "ssm":
		needs = s.ssmNeeds(c)
	case "fis":
		needs = s.fisNeeds(c)
	case "eks":
		if match := clusterPath.FindStringSubmatch(c.form.value); match != nil {
			needs = []policy.Request{{Action: "eks:" + c.action, Resource: s.account.arn("eks", "cluster/"+match[1])}}
		}
	default:
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

// sqsNeeds: a batch is authorised as what it is a batch of.
func (s *Server) sqsNeeds(c *call) []policy.Request {
	in, err := peekJSON[struct {
		QueueUrl  string //nolint:revive // the wire's spelling
		QueueName string
	}](c)
	if err != nil {
		return nil // the handler says what is wrong with the request
	}
	name := in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:] + in.QueueName
	return []policy.Request{{Action: "sqs:" + strings.TrimSuffix(c.action, "Batch"), Resource: s.account.arn("sqs", name)}}
}

// ssmNeeds: parameters below /aws are Amazon's and belong to no account.
func (s *Server) ssmNeeds(c *call) []policy.Request {
	in, err := peekJSON[struct {
		Name, Path string
		Names      []string
	}](c)
	if err != nil {
		return nil // the handler says what is wrong with the request
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

// tagKeys puts tags into condition keys, as aws:RequestTag/ or aws:ResourceTag/.
func tagKeys(keys map[string][]string, prefix string, tags map[string]string) {
	for key, value := range tags {
		keys[prefix+key] = []string{value}
	}
}

// onRequestTags are the condition keys of a resource that is made with tags.
func onRequestTags(tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	tagKeys(keys, "aws:RequestTag/", tags)
	if len(tags) > 0 {
		keys["aws:TagKeys"] = sortedKeys(tags)
	}
	return keys
}

// onResourceTags are the condition keys of a resource that is there.
func onResourceTags(service string, tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	tagKeys(keys, "aws:ResourceTag/", tags)
	tagKeys(keys, service+":ResourceTag/", tags)
	return keys
}

// iamNeeds names profiles by their ARN, with the path. A profile that is created with tags is also tagged; its tags count
// as its own then, or the policies that Karpenter publishes, which ask for aws:ResourceTag there, could not work.
// "AddRoleToInstanceProfile requires iam:PassRole" (IAM API reference); the role is passed to EC2.
func (s *Server) iamNeeds(c *call) []policy.Request {
	name, path := c.form.str("InstanceProfileName"), c.form.str("Path")
	setDefault(&path, "/")
	need := policy.Request{Action: "iam:" + c.action, Resource: "*"}
	p := s.profiles.rows[name]
	if p != nil {
		need.Resource, need.Keys = s.account.profileARN(p.Path+p.Name), onResourceTags("iam", p.Tags)
	} else if name != "" {
		need.Resource = s.account.profileARN(path + name)
	}
	switch c.action {
	case "CreateInstanceProfile":
		tags := iamTags(c)
		need.Resource, need.Keys = s.account.profileARN(path+name), onRequestTags(tags)
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
		return []policy.Request{need, s.passRole(c.form.str("RoleName"))}
	case "GetRole":
		need.Resource = s.account.roleARN(c.form.str("RoleName"))
		// Service-linked roles have paths (IAM User Guide, "Create a service-linked role").
		if c.form.str("RoleName") == "AWSServiceRoleForEC2Spot" {
			need.Resource = s.account.roleARN("aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot")
		}
	}
	return []policy.Request{need}
}

// passRole is what handing a role to instances needs.
func (s *Server) passRole(role string) policy.Request {
	service := "ec2.amazonaws.com"
	if s.account.partition() == "aws-cn" {
		service += ".cn" // "AWS service endpoints in China" (iam:PassedToService of the China regions)
	}
	return policy.Request{Action: "iam:PassRole", Resource: s.account.roleARN(role), Keys: map[string][]string{"iam:PassedToService": {service}}}
}

// validate refuses principals without a key.
func (p Policies) validate() error {
	if _, ok := p[""]; ok {
		return errors.New("policies of a principal without an access key")
	}
	return nil
}
