package ec2sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Parameters that AWS has but the simulator ignores are refused, so that no test passes because of an effect that does
// not exist. The check runs after the handler, on the parameters that the handler has not read. It does not undo what the
// handler did.

// unsupported returns the error for a parameter without an effect. AWS has no code for that; SDKs do not retry status
// 501.
func unsupported(c *call, name string) *apiError {
	return &apiError{http.StatusNotImplemented, "UnsupportedBySimulator", fmt.Sprintf(
		"Unsupported by the simulator: the parameter %s of %s has no effect here. Give it one, or list it with the reason in ignoredParameters.",
		name, c.action)}
}

// unsupportedFilter returns the error for a filter that EC2 documents and the simulator lacks.
func unsupportedFilter(name string) *apiError {
	return &apiError{http.StatusNotImplemented, "UnsupportedBySimulator", fmt.Sprintf("Unsupported by the simulator: EC2 has the filter %s.", name)}
}

// ignoredParameters are parameters that are accepted although they have no effect, by action and by name without list
// indexes, each with the reason. An action may be a pattern.
var ignoredParameters = map[string]map[string]string{
	"*": {
		"Action":  "it is the protocol's",
		"Version": "it is the protocol's, and there is one version",
	},
	"CopyImage": {
		"Description": "the description of every image is made up",
		"Encrypted":   "nobody looks into the snapshots of images",
		"KmsKeyId":    "nobody looks into the snapshots of images",
	},
	"CreateFleet": {
		"Context": "the API reference calls it reserved; Karpenter passes on what its user has been told by AWS",
	},
	"CreateLaunchTemplate": {
		"LaunchTemplateData.BlockDeviceMapping.Ebs.VolumeInitializationRate":    "blocks are never loaded from a snapshot here",
		"LaunchTemplateData.InstanceMarketOptions.SpotOptions.SpotInstanceType": "all spot requests of the simulator are one-time",
	},
	"RunInstances": {
		"BlockDeviceMapping.Ebs.VolumeInitializationRate":    "blocks are never loaded from a snapshot here",
		"InstanceMarketOptions.SpotOptions.SpotInstanceType": "all spot requests of the simulator are one-time",
	},
	"DescribeSpotPriceHistory": {
		"StartTime": "the answer has the prices of the moment alone, which belong to every time span up to now",
	},
	// IAM, SQS and SSM.
	"CreateRole": {
		"Description": "nobody assumes a role here", "MaxSessionDuration": "nobody assumes a role here",
		"PermissionsBoundary": "nobody assumes a role here", "Tags.Key": "nobody looks at the tags of roles", "Tags.Value": "nobody looks at the tags of roles",
	},
	"PutRule":             {"RoleArn": "rules deliver to queues, whose policies allow it"},
	"GetParameter":        {"WithDecryption": "no parameter of the simulator is a SecureString"},
	"GetParameters":       {"WithDecryption": "no parameter of the simulator is a SecureString"},
	"GetParametersByPath": {"WithDecryption": "no parameter of the simulator is a SecureString"},
	"SendMessage":         {"MessageAttributes": "messages are delivered without attributes of their sender"},
	"ReceiveMessage": {
		"AttributeNames":              "every message carries the attributes that the simulator has",
		"MessageAttributeNames":       "no message of the simulator has attributes of its sender",
		"MessageSystemAttributeNames": "every message carries the attributes that the simulator has",
		"ReceiveRequestAttemptId":     "it is for FIFO queues",
	},
}

// ignored reports whether a parameter is accepted without an effect.
func ignored(action, name string) bool {
	for pattern, names := range ignoredParameters {
		if _, ok := names[name]; ok && wildcard(pattern, action) {
			return true
		}
	}
	return false
}

var listIndex = regexp.MustCompile(`\.(member\.)?[0-9]+\b`)

// unread returns the first parameter below a name that has not been read, or "". A name without a value of its own counts
// as read if everything below it has been read.
func (c *call) unread(path string, p *params) string {
	if path != "" && !p.read && (len(p.children) == 0 || p.value != "") && !ignored(c.action, listIndex.ReplaceAllString(path, "")) {
		return path
	}
	for _, key := range slices.Sorted(maps.Keys(p.children)) {
		if name := c.unread(join(path, key), p.children[key]); name != "" {
			return name
		}
	}
	return ""
}

// forget marks a parameter and everything below it as unread.
func (p *params) forget() {
	p.read = false
	for _, child := range p.children {
		child.forget()
	}
}

// effective refuses a call of a Query protocol with parameters that its handler has not read. If the model describes the
// service's requests as JSON, decodeJSON does this instead, whatever protocol the client uses.
func (c *call) effective() error {
	service := models()[c.service]
	if c.form == nil || c.replayed || service == nil || service.Protocol != "ec2" && service.Protocol != "query" {
		return nil
	}
	if name := c.unread("", c.form); name != "" {
		return unsupported(c, name)
	}
	return nil
}

// decodeJSON decodes the body of a JSON request, and refuses fields that the handler does not read.
func decodeJSON[T any](c *call) (T, error) {
	in, err := peekJSON[T](c)
	if err != nil {
		return in, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(c.body, &members); err != nil {
		return in, refuse("SerializationException", "%v", err)
	}
	maps.DeleteFunc(members, func(name string, value json.RawMessage) bool {
		return ignored(c.action, name) || string(value) == "null"
	})
	known, err := json.Marshal(members)
	if err != nil {
		return in, fmt.Errorf("encode request: %w", err)
	}
	strict := json.NewDecoder(strings.NewReader(string(known)))
	strict.DisallowUnknownFields()
	var again T
	if err := strict.Decode(&again); err != nil {
		name := strings.TrimPrefix(err.Error(), "json: unknown field ")
		return in, unsupported(c, strings.Trim(name, `"`))
	}
	return in, nil
}

// peekJSON decodes part of the body of a JSON request.
func peekJSON[T any](c *call) (T, error) {
	var in T
	if err := json.Unmarshal(c.body, &in); err != nil {
		return in, refuse("SerializationException", "%v", err)
	}
	return in, nil
}
