package oracle

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// Actions are the patterns of the calls that are compared: those that create or remove something. RunInstances is a dry run
// for both.
var Actions = []string{
	"CreateLaunchTemplate", "CreateFleet", "RunInstances", "TerminateInstances",
	"CreateInstanceProfile", "DeleteInstanceProfile", "AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "TagInstanceProfile",
}

// Canonical reduces the calls of one controller to documents by action, each document once: how often a controller calls is
// not compared. A fleet's template is named by its contents, so the calls have to contain its creation.
func Canonical(calls []ec2sim.Call) map[string][]Document {
	templates := map[string]string{}
	for _, call := range calls {
		if call.Action == "CreateLaunchTemplate" {
			templates[call.Parameters["LaunchTemplateName"]] = templateLabel(call.Parameters)
		}
	}
	seen := map[string]bool{}
	out := map[string][]Document{}
	for _, call := range calls {
		if len(call.Parameters) == 0 {
			continue
		}
		action, document := actionOf(call), reduce(call, templates)
		if key := action + "\n" + document.text(); !seen[key] {
			seen[key] = true
			out[action] = append(out[action], document)
		}
	}
	return out
}

// templateLabel returns a label that tells a case's templates apart.
func templateLabel(parameters map[string]string) string {
	label := parameters["LaunchTemplateData.ImageId"]
	if parameters["LaunchTemplateData.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"] != "" {
		label += " reserved"
	}
	return label
}

// forValidation follows the action of calls that find out whether an EC2NodeClass works, and that launch nothing.
const forValidation = " for validation"

// ForValidation reports whether an action, as Canonical names it, is one that finds out whether an EC2NodeClass works.
func ForValidation(action string) bool { return strings.HasSuffix(action, forValidation) }

// actionOf returns a call's action, marked if it is a dry run or a template for one. Such a template belongs to no NodePool:
// Karpenter leaves the name empty, and Tenon uses one of its own.
func actionOf(call ec2sim.Call) string {
	if call.Parameters["DryRun"] == "true" {
		return call.Action + forValidation
	}
	if call.Action == "CreateLaunchTemplate" {
		for key, value := range call.Parameters {
			pool := call.Parameters[strings.TrimSuffix(key, ".Key")+".Value"]
			if value == awsv1.NodePoolTagKey && strings.HasPrefix(key, "TagSpecification.") && (pool == "" || pool == "tenon-validation") {
				return call.Action + forValidation
			}
		}
	}
	return call.Action
}

// reduce reduces a call. TerminateInstances is the same document however many instances it names: batches do not matter.
func reduce(call ec2sim.Call, templates map[string]string) Document {
	if call.Action == "TerminateInstances" {
		return Document{"InstanceId": "<instance>"}
	}
	root := grow(call.Parameters)
	document := Document{}
	for _, dropped := range []string{"Action", "Version", "ClientToken", "LaunchTemplateName", "DryRun"} {
		delete(root.children, dropped)
	}
	if call.Action == "CreateFleet" || call.Action == "RunInstances" {
		nameTemplates(root, templates)
	}
	oneInterface(root)
	oneInterface(root.children["LaunchTemplateData"])
	root.flatten("", document)
	for path, value := range document {
		document[path] = anonymous(value)
	}
	if encoded, ok := document["LaunchTemplateData.UserData"]; ok {
		delete(document, "LaunchTemplateData.UserData")
		if text, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			maps.Copy(document, UserData("UserData", string(text)))
		} else {
			document["UserData"] = encoded
		}
	}
	return document
}

// oneInterface moves the security groups and the subnet of an instance to its first interface, which they apply to if no
// interface is named (RunInstances, "SecurityGroupId.N").
func oneInterface(instance *node) {
	if instance == nil || instance.children["NetworkInterface"] != nil {
		return
	}
	first := map[string]*node{}
	for _, field := range []string{"SecurityGroupId", "SubnetId"} {
		if value := instance.children[field]; value != nil {
			first[field] = value
			delete(instance.children, field)
		}
	}
	if len(first) > 0 {
		first["DeviceIndex"] = &node{text: "0"}
		instance.children["NetworkInterface"] = &node{children: map[string]*node{"1": {children: first}}}
	}
}

// nameTemplates replaces the names of launch templates, which are hashes, by labels of the templates, and moves them to the
// overrides, because controllers group overrides under templates as they like.
func nameTemplates(root *node, templates map[string]string) {
	if single := root.children["LaunchTemplate"]; single != nil {
		single.children["LaunchTemplateName"] = &node{text: templates[single.value("LaunchTemplateName")]}
	}
	configs := root.children["LaunchTemplateConfigs"]
	if configs == nil {
		return
	}
	all := map[string]*node{}
	for _, config := range configs.items() {
		specification := config.children["LaunchTemplateSpecification"]
		for _, override := range config.children["Overrides"].items() {
			override.children["Template"] = &node{text: templates[specification.value("LaunchTemplateName")]}
			override.children["Version"] = &node{text: specification.value("Version")}
			all[strconv.Itoa(len(all)+1)] = override
		}
	}
	delete(root.children, "LaunchTemplateConfigs")
	root.children["Overrides"] = &node{children: all}
}

// invented are the patterns of values that differ between controllers, runs or clusters, and their substitutes.
var invented = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\bi-[0-9a-f]{8,17}\b`), "<instance>"},
	{regexp.MustCompile(`\bcr-[0-9a-f]{8,17}\b`), "<reservation>"},
	{regexp.MustCompile(`\bpg-[0-9a-f]{8,17}\b`), "<placement group>"},
	{regexp.MustCompile(`^[A-Za-z0-9-]+_([0-9a-f]{16}|[0-9]{15,20})$`), "<profile>"},
	{regexp.MustCompile(`^[0-9a-f]{8}-[0-9]+-[0-9]+$`), "<launch group>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
}

func anonymous(value string) string {
	for _, made := range invented {
		value = made.pattern.ReplaceAllString(value, made.as)
	}
	return value
}

// node is a node of the tree that dotted keys describe.
type node struct {
	text     string
	children map[string]*node
}

func grow(parameters map[string]string) *node {
	root := &node{}
	for key, value := range parameters {
		at := root
		for part := range strings.SplitSeq(key, ".") {
			if at.children == nil {
				at.children = map[string]*node{}
			}
			if at.children[part] == nil {
				at.children[part] = &node{}
			}
			at = at.children[part]
		}
		at.text = value
	}
	return root
}

func (n *node) value(key string) string {
	if n == nil || n.children[key] == nil {
		return ""
	}
	return n.children[key].text
}

// items returns the members of a list in order; IAM puts a level named "member" in between.
func (n *node) items() []*node {
	if n == nil {
		return nil
	}
	if member := n.children["member"]; member != nil {
		n = member
	}
	var numbers []int
	for key := range n.children {
		if number, err := strconv.Atoi(key); err == nil {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	var out []*node
	for _, number := range numbers {
		out = append(out, n.children[strconv.Itoa(number)])
	}
	return out
}

// identities are the fields that tell the items of a list apart; the first that an item has counts.
var identities = [][]string{{"Key"}, {"ResourceType"}, {"DeviceName"}, {"NetworkCardIndex", "DeviceIndex"}, {"InstanceType", "SubnetId"}}

func (n *node) flatten(path string, into Document) {
	items := n.items()
	if len(items) == 0 {
		if len(n.children) == 0 {
			into[path] = n.text
		}
		for key, child := range n.children {
			child.flatten(strings.TrimPrefix(path+"."+key, "."), into)
		}
		return
	}
	var values []string
	for i, item := range items {
		if len(item.children) == 0 {
			values = append(values, item.text)
			continue
		}
		item.flattenItem(path, i, into)
	}
	if len(values) > 0 {
		slices.Sort(values)
		into[path] = strings.Join(values, " ")
	}
}

// flattenItem names an item of a list by what identifies it, or by its number if nothing does. A tag is its value.
func (n *node) flattenItem(path string, number int, into Document) {
	if n.children["DeviceIndex"] != nil && n.children["NetworkCardIndex"] == nil {
		n.children["NetworkCardIndex"] = &node{text: "0"} // EC2's default
	}
	for _, fields := range identities {
		if n.children[fields[0]] == nil {
			continue
		}
		var names []string
		for _, field := range fields {
			names = append(names, n.value(field))
			delete(n.children, field)
		}
		path = fmt.Sprintf("%s[%s]", path, strings.Join(names, "/"))
		switch {
		case fields[0] == "Key":
			into[path] = n.value("Value")
		case len(n.children) == 0:
			into[path] = ""
		default:
			n.flatten(path, into)
		}
		return
	}
	n.flatten(fmt.Sprintf("%s[%d]", path, number), into)
}
