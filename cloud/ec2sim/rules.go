package ec2sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// eventRule is a rule of EventBridge's default bus.
type eventRule struct {
	Name        string
	Description string            `json:",omitempty"`
	Pattern     string            `json:",omitempty"`
	State       string            `json:",omitempty"`
	Tags        map[string]string `json:",omitempty"`
	// Targets are ARNs by the target's id.
	Targets map[string]string `json:",omitempty"`
}

// eventRules keeps the account's EventBridge rules. They decide nothing: events reach every queue (events.go).
type eventRules struct {
	*table[eventRule]
	account *account
}

// tagJSON is a tag as EventBridge writes it.
type tagJSON struct {
	Key, Value string
}

func tagsOfJSON(list []tagJSON) map[string]string {
	tags := map[string]string{}
	for _, t := range list {
		tags[t.Key] = t.Value
	}
	return tags
}

func (r *eventRules) arn(name string) string { return r.account.arn("events", "rule/"+name) }

// onDefaultBus refuses a bus other than the default one.
func onDefaultBus(bus string) error {
	if bus != "" && bus != "default" {
		return refuse("ResourceNotFoundException", "Event bus %s does not exist.", bus)
	}
	return nil
}

// find returns a rule of the default bus.
func (r *eventRules) find(name, bus string) (*eventRule, error) {
	if err := onDefaultBus(bus); err != nil {
		return nil, err
	}
	rule := r.rows[name]
	if rule == nil {
		return nil, refuse("ResourceNotFoundException", "Rule %s does not exist on EventBus default.", name)
	}
	return rule, nil
}

type putRuleInput struct {
	Name, Description, EventPattern, State, EventBusName string
	Tags                                                 []tagJSON
}

// putRule creates or updates a rule: "If you are updating an existing rule, any tags you specify are ignored" (EventBridge
// API reference).
func (r *eventRules) putRule(c *call) (any, error) {
	in, err := decodeJSON[putRuleInput](c)
	if err == nil {
		err = onDefaultBus(in.EventBusName)
	}
	if err != nil {
		return nil, err
	}
	if in.EventPattern == "" {
		return nil, refuse("ValidationException", "Parameter(s) EventPattern or ScheduleExpression must be specified.")
	}
	setDefault(&in.State, "ENABLED")
	rule := r.rows[in.Name]
	if rule == nil {
		rule = &eventRule{Name: in.Name, Tags: tagsOfJSON(in.Tags), Targets: map[string]string{}}
	}
	rule.Description, rule.Pattern, rule.State = in.Description, in.EventPattern, in.State
	r.put(in.Name, rule)
	return map[string]string{"RuleArn": r.arn(in.Name)}, nil
}

func (r *eventRules) putTargets(c *call) (any, error) {
	in, err := decodeJSON[struct {
		Rule, EventBusName string
		Targets            []struct{ Id, Arn string } // the wire's spelling
	}](c)
	if err != nil {
		return nil, err
	}
	rule, err := r.find(in.Rule, in.EventBusName)
	if err != nil {
		return nil, err
	}
	for _, target := range in.Targets {
		rule.Targets[target.Id] = target.Arn
	}
	r.put(rule.Name, rule)
	return map[string]any{"FailedEntryCount": 0, "FailedEntries": []any{}}, nil
}

func (r *eventRules) removeTargets(c *call) (any, error) {
	in, err := decodeJSON[struct {
		Rule, EventBusName string
		Ids                []string
	}](c)
	if err != nil {
		return nil, err
	}
	rule, err := r.find(in.Rule, in.EventBusName)
	if err != nil {
		return nil, err
	}
	for _, id := range in.Ids {
		delete(rule.Targets, id)
	}
	r.put(rule.Name, rule)
	return map[string]any{"FailedEntryCount": 0, "FailedEntries": []any{}}, nil
}

// delete handles DeleteRule: "Before you can delete the rule, you must remove all targets" (EventBridge API reference).
func (r *eventRules) delete(c *call) (any, error) {
	in, err := decodeJSON[struct{ Name, EventBusName string }](c)
	if err != nil {
		return nil, err
	}
	rule, err := r.find(in.Name, in.EventBusName)
	switch {
	case err != nil:
		return nil, err
	case len(rule.Targets) > 0:
		return nil, refuse("ValidationException", "Rule can't be deleted since it has targets.")
	}
	r.del(rule.Name)
	return struct{}{}, nil
}

// pageOfRules returns a page of a listing, of 100 items unless the call limits it.
func pageOfRules[T any](items []T, key func(T) string, token string, limit *int) ([]T, string, error) {
	size := 100
	if limit != nil {
		size = *limit
	}
	return paginate(items, key, token, size)
}

func (r *eventRules) list(c *call) (any, error) {
	in, err := decodeJSON[struct {
		NamePrefix, EventBusName, NextToken string
		Limit                               *int
	}](c)
	if err == nil {
		err = onDefaultBus(in.EventBusName)
	}
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(r.sorted(), func(rule *eventRule) bool { return !strings.HasPrefix(rule.Name, in.NamePrefix) })
	page, next, err := pageOfRules(found, func(rule *eventRule) string { return rule.Name }, in.NextToken, in.Limit)
	if err != nil {
		return nil, err
	}
	rules := []map[string]string{}
	for _, rule := range page {
		shown := map[string]string{
			"Name": rule.Name, "Arn": r.arn(rule.Name), "EventPattern": rule.Pattern, "State": rule.State, "EventBusName": "default",
		}
		if rule.Description != "" {
			shown["Description"] = rule.Description
		}
		rules = append(rules, shown)
	}
	return withToken(map[string]any{"Rules": rules}, next), nil
}

func (r *eventRules) listTargets(c *call) (any, error) {
	in, err := decodeJSON[struct {
		Rule, EventBusName, NextToken string
		Limit                         *int
	}](c)
	if err != nil {
		return nil, err
	}
	rule, err := r.find(in.Rule, in.EventBusName)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOfRules(sortedKeys(rule.Targets), func(id string) string { return id }, in.NextToken, in.Limit)
	if err != nil {
		return nil, err
	}
	targets := []map[string]string{}
	for _, id := range page {
		targets = append(targets, map[string]string{"Id": id, "Arn": rule.Targets[id]})
	}
	return withToken(map[string]any{"Targets": targets}, next), nil
}

// withToken adds the token of the next page to an answer, if there is one.
func withToken(out map[string]any, next string) map[string]any {
	if next != "" {
		out["NextToken"] = next
	}
	return out
}

type ruleTagsInput struct {
	ResourceARN string
	Tags        []tagJSON
}

// tagged returns the rule that a call on tags names by its ARN.
func (r *eventRules) tagged(arn string) (*eventRule, error) {
	_, name, _ := strings.Cut(arn, ":rule/")
	return r.find(name, "")
}

func (r *eventRules) listTags(c *call) (any, error) {
	in, err := decodeJSON[struct{ ResourceARN string }](c)
	if err != nil {
		return nil, err
	}
	rule, err := r.tagged(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	tags := []tagJSON{}
	for _, key := range sortedKeys(rule.Tags) {
		tags = append(tags, tagJSON{key, rule.Tags[key]})
	}
	return map[string]any{"Tags": tags}, nil
}

func (r *eventRules) tag(c *call) (any, error) {
	in, err := decodeJSON[ruleTagsInput](c)
	if err != nil {
		return nil, err
	}
	rule, err := r.tagged(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	rule.Tags = maps.Clone(rule.Tags)
	if rule.Tags == nil {
		rule.Tags = map[string]string{}
	}
	maps.Copy(rule.Tags, tagsOfJSON(in.Tags))
	r.put(rule.Name, rule)
	return struct{}{}, nil
}

// needs returns the permissions an EventBridge call needs ("Actions, resources, and condition keys for Amazon EventBridge").
// ListRules has no resource. Creating a rule with tags also needs events:TagResource.
func (r *eventRules) needs(c *call) []policy.Request {
	in, err := peekJSON[struct {
		Name, Rule, ResourceARN string
		Tags                    []tagJSON
	}](c)
	if err != nil {
		return nil // the handler reports what is wrong with the request
	}
	if c.action == "ListRules" {
		return []policy.Request{{Action: "events:ListRules", Resource: "*"}}
	}
	name := in.Name + in.Rule
	if _, named, ok := strings.Cut(in.ResourceARN, ":rule/"); ok {
		name = named
	}
	need := policy.Request{Action: "events:" + c.action, Resource: r.arn(name), Keys: map[string][]string{}}
	if rule := r.rows[name]; rule != nil {
		need.Keys = onResourceTags("events", rule.Tags)
	}
	maps.Copy(need.Keys, onRequestTags(tagsOfJSON(in.Tags)))
	if c.action == "PutRule" && len(in.Tags) > 0 {
		tag := policy.Request{Action: "events:TagResource", Resource: need.Resource, Keys: onRequestTags(tagsOfJSON(in.Tags))}
		return []policy.Request{need, tag}
	}
	return []policy.Request{need}
}
