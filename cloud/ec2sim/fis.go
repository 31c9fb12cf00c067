package ec2sim

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// experimentTemplate is a FIS experiment template with one action: aws:ec2:send-spot-instance-interruptions, the only one
// that the simulator supports (FIS User Guide, "AWS FIS Actions reference").
type experimentTemplate struct {
	ID          string
	Token       string // of the request that created it
	Description string
	Role        string
	Tags        map[string]string
	CreatedAt   time.Time
	Input       experimentTemplateInput // as requested
}

// experiment is a started template. Its state at any moment follows from the clock.
type experiment struct {
	ID        string
	Token     string
	Template  string
	Role      string
	Tags      map[string]string
	StartedAt time.Time
	// EndsAt is when the instances are interrupted.
	EndsAt time.Time
	// Failure is why the experiment failed at its start; empty if it did not.
	Failure string
}

type experimentTemplateInput struct {
	ClientToken    string                      `json:"clientToken"`
	Description    string                      `json:"description"`
	RoleARN        string                      `json:"roleArn"`
	Tags           map[string]string           `json:"tags"`
	StopConditions []map[string]string         `json:"stopConditions"`
	Targets        map[string]experimentTarget `json:"targets"`
	Actions        map[string]experimentAction `json:"actions"`
}

type experimentTarget struct {
	ResourceType  string            `json:"resourceType"`
	ResourceARNs  []string          `json:"resourceArns,omitempty"`
	ResourceTags  map[string]string `json:"resourceTags,omitempty"`
	SelectionMode string            `json:"selectionMode"`
}

type experimentAction struct {
	ActionID   string            `json:"actionId"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Targets    map[string]string `json:"targets,omitempty"`
}

const (
	interruptSpot = "aws:ec2:send-spot-instance-interruptions"
	// spotTarget is the action's name for its target, and spotResource the resource type that the target must have.
	spotTarget   = "SpotInstances"
	spotResource = "aws:ec2:spot-instance"
	// FIS interrupts instances after two to fifteen minutes.
	minInterruption, maxInterruption = 2 * time.Minute, 15 * time.Minute
)

var (
	experimentPath         = regexp.MustCompile(`^/experiments/([^/]+)$`)
	experimentTemplatePath = regexp.MustCompile(`^/experimentTemplates/([^/]+)$`)
	minutes                = regexp.MustCompile(`^PT([0-9]+)M$`)
)

// fisAction returns the action of a FIS request (FIS API reference, "Request Syntax" of each), or "" if there is none.
func fisAction(method, path string) string {
	switch {
	case method == http.MethodPost && path == "/experimentTemplates":
		return "CreateExperimentTemplate"
	case method == http.MethodGet && path == "/experimentTemplates":
		return "ListExperimentTemplates"
	case method == http.MethodDelete && experimentTemplatePath.MatchString(path):
		return "DeleteExperimentTemplate"
	case method == http.MethodPost && path == "/experiments":
		return "StartExperiment"
	case method == http.MethodGet && experimentPath.MatchString(path):
		return "GetExperiment"
	}
	return ""
}

// fis is the account's Fault Injection Service.
type fis struct {
	account     *account
	templates   *table[experimentTemplate]
	experiments *table[experiment]
	instances   *instances
	events      *events
}

func (f *fis) createTemplate(c *call) (any, error) {
	in, err := decodeJSON[experimentTemplateInput](c)
	if err != nil {
		return nil, err
	}
	if err := in.validate(); err != nil {
		return nil, err
	}
	for _, t := range f.templates.sorted() {
		if t.Token == in.ClientToken {
			return map[string]any{"experimentTemplate": f.templateJSON(t)}, nil
		}
	}
	t := &experimentTemplate{
		ID: "EXT" + newID("x")[2:], Token: in.ClientToken, Description: in.Description, Role: in.RoleARN, Tags: in.Tags, CreatedAt: c.at, Input: in,
	}
	f.templates.put(t.ID, t)
	return map[string]any{"experimentTemplate": f.templateJSON(t)}, nil
}

// validate refuses what FIS refuses, and what the simulator does not support.
func (in experimentTemplateInput) validate() error {
	for name, action := range in.Actions {
		if action.ActionID != interruptSpot {
			return fisInvalid("This simulator has the action %s only, not %s", interruptSpot, action.ActionID)
		}
		if _, err := action.after(); err != nil {
			return err
		}
		target, ok := in.Targets[action.Targets[spotTarget]]
		switch {
		case !ok || len(action.Targets) != 1:
			return fisInvalid("The action %s needs the target %s", name, spotTarget)
		case target.ResourceType != spotResource:
			return fisInvalid("The target of the action %s has to be of the resource type %s, not %s", name, spotResource, target.ResourceType)
		case target.SelectionMode != "ALL":
			return fisInvalid("This simulator has the selection mode ALL only, not %s", target.SelectionMode)
		// "You cannot specify both resource ARNs and resource tags" (FIS User Guide, "Targets for AWS FIS").
		case len(target.ResourceARNs) == 0 && len(target.ResourceTags) == 0, len(target.ResourceARNs) > 0 && len(target.ResourceTags) > 0:
			return fisInvalid("A target has either resourceArns or resourceTags")
		}
	}
	if len(in.Actions) != 1 {
		return fisInvalid("This simulator takes templates of one action")
	}
	for _, stop := range in.StopConditions {
		if source := stop["source"]; source != "none" && source != "aws:cloudwatch:alarm" {
			return fisInvalid("The stop condition's source %s is neither none nor aws:cloudwatch:alarm", source)
		}
	}
	if len(in.StopConditions) == 0 {
		return fisInvalid("A template needs a stop condition, of the source none if there is to be none")
	}
	return nil
}

// after returns how long after the action's start the instances are interrupted.
func (a experimentAction) after() (time.Duration, error) {
	text := a.Parameters["durationBeforeInterruption"]
	match := minutes.FindStringSubmatch(text)
	if match == nil {
		return 0, fisInvalid("durationBeforeInterruption '%s' is not a duration such as PT2M", text)
	}
	d, err := time.ParseDuration(match[1] + "m")
	if err != nil || d < minInterruption || d > maxInterruption {
		return 0, fisInvalid("durationBeforeInterruption %s is not within PT2M and PT15M", text)
	}
	return d, nil
}

func fisInvalid(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "ValidationException", fmt.Sprintf(format, args...)}
}

func fisMissing(kind, id string) error {
	return &apiError{http.StatusNotFound, "ResourceNotFoundException", fmt.Sprintf("%s with ID %s not found", kind, id)}
}

func (f *fis) templateJSON(t *experimentTemplate) map[string]any {
	return map[string]any{
		"id": t.ID, "arn": f.account.arn("fis", "experiment-template/"+t.ID), "description": t.Description, "roleArn": t.Role, "tags": t.Tags,
		"targets": t.Input.Targets, "actions": t.Input.Actions, "stopConditions": t.Input.StopConditions,
		"creationTime": epoch(t.CreatedAt), "lastUpdateTime": epoch(t.CreatedAt), "targetAccountConfigurationsCount": 0,
	}
}

// epoch formats an instant as the REST-JSON protocol does.
func epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (f *fis) listTemplates(_ *call) (any, error) {
	list := []map[string]any{}
	for _, t := range f.templates.sorted() {
		list = append(list, map[string]any{
			"id": t.ID, "arn": f.account.arn("fis", "experiment-template/"+t.ID), "description": t.Description, "tags": t.Tags,
			"creationTime": epoch(t.CreatedAt), "lastUpdateTime": epoch(t.CreatedAt),
		})
	}
	return map[string]any{"experimentTemplates": list}, nil
}

func (f *fis) deleteTemplate(c *call) (any, error) {
	id := experimentTemplatePath.FindStringSubmatch(c.form.value)[1]
	t := f.templates.rows[id]
	if t == nil {
		return nil, fisMissing("ExperimentTemplate", id)
	}
	f.templates.del(id)
	return map[string]any{"experimentTemplate": f.templateJSON(t)}, nil
}

type startExperimentInput struct {
	ClientToken          string            `json:"clientToken"`
	ExperimentTemplateID string            `json:"experimentTemplateId"`
	Tags                 map[string]string `json:"tags"`
}

// start starts an experiment: "the target instance immediately receives an instance rebalance recommendation"; the notice
// comes two minutes before the interruption (FIS User Guide, aws:ec2:send-spot-instance-interruptions). An experiment
// without any target in the account fails (emptyTargetResolutionMode fail, the default). The documentation does not say
// when an experiment is completed; here it is when the instances are interrupted.
func (f *fis) start(c *call) (any, error) {
	in, err := decodeJSON[startExperimentInput](c)
	if err != nil {
		return nil, err
	}
	for _, e := range f.experiments.sorted() {
		if e.Token == in.ClientToken {
			return map[string]any{"experiment": f.experimentJSON(e, c.at)}, nil
		}
	}
	t := f.templates.rows[in.ExperimentTemplateID]
	if t == nil {
		return nil, fisMissing("ExperimentTemplate", in.ExperimentTemplateID)
	}
	e := &experiment{ID: "EXP" + newID("x")[2:], Token: in.ClientToken, Template: t.ID, Role: t.Role, Tags: in.Tags, StartedAt: c.at, EndsAt: c.at}
	for _, action := range t.Input.Actions {
		after, err := action.after()
		if err != nil {
			return nil, err
		}
		found := f.targets(t.Input.Targets[action.Targets[spotTarget]])
		if len(found) == 0 {
			e.Failure = "Target resolution returned empty set"
		}
		e.EndsAt = c.at.Add(after)
		for _, i := range found {
			f.events.announce(c.at, f.events.rebalance(i.ID, c.at))
			f.instances.interrupt(i, e.EndsAt.Add(-time.Duration(spotNotice)), e.EndsAt)
		}
	}
	f.experiments.put(e.ID, e)
	return map[string]any{"experiment": f.experimentJSON(e, c.at)}, nil
}

// targets returns the living spot instances that a target selects.
func (f *fis) targets(target experimentTarget) []*instance {
	var found []*instance
	for _, i := range f.instances.sorted() {
		if i.ended() || !i.Spot {
			continue
		}
		wanted := slices.Contains(target.ResourceARNs, f.account.arn("ec2", "instance/"+i.ID))
		if len(target.ResourceTags) > 0 {
			wanted = true
			for key, value := range target.ResourceTags {
				has, ok := i.Tags[key]
				wanted = wanted && ok && has == value
			}
		}
		if wanted {
			found = append(found, i)
		}
	}
	return found
}

func (f *fis) experimentJSON(e *experiment, now time.Time) map[string]any {
	status, reason := "running", "Experiment is running."
	switch {
	case e.Failure != "":
		status, reason = "failed", e.Failure
	case !now.Before(e.EndsAt):
		status, reason = "completed", "Experiment completed."
	}
	out := map[string]any{
		"id": e.ID, "arn": f.account.arn("fis", "experiment/"+e.ID), "experimentTemplateId": e.Template, "roleArn": e.Role, "tags": e.Tags,
		"state": map[string]string{"status": status, "reason": reason}, "creationTime": epoch(e.StartedAt), "startTime": epoch(e.StartedAt),
		"targetAccountConfigurationsCount": 0,
	}
	if status != "running" {
		out["endTime"] = epoch(e.EndsAt)
	}
	return out
}

func (f *fis) get(c *call) (any, error) {
	id := experimentPath.FindStringSubmatch(c.form.value)[1]
	e := f.experiments.rows[id]
	if e == nil {
		return nil, fisMissing("Experiment", id)
	}
	return map[string]any{"experiment": f.experimentJSON(e, c.at)}, nil
}

// needs returns the permissions a FIS call needs ("Actions, resources, and condition keys for AWS Fault Injection
// Service"). Creating something with tags also needs fis:TagResource, and a role is passed to FIS (FIS User Guide,
// "Identity-based policy examples").
func (f *fis) needs(c *call) []policy.Request {
	need := func(resource string, keys map[string][]string) policy.Request {
		return policy.Request{Action: "fis:" + c.action, Resource: resource, Keys: keys}
	}
	creates := func(kind string, tags map[string]string) []policy.Request {
		arn := f.account.arn("fis", kind+"/*")
		needs := []policy.Request{need(arn, onRequestTags(tags))}
		if len(tags) > 0 {
			needs = append(needs, policy.Request{Action: "fis:TagResource", Resource: arn, Keys: onRequestTags(tags)})
		}
		return needs
	}
	template := func(id string) policy.Request {
		var tags map[string]string
		if t := f.templates.rows[id]; t != nil {
			tags = t.Tags
		}
		return need(f.account.arn("fis", "experiment-template/"+id), onResourceTags("fis", tags))
	}
	switch c.action {
	case "CreateExperimentTemplate":
		in, err := decodeJSON[experimentTemplateInput](c)
		if err != nil {
			return nil // the handler reports what is wrong with the request
		}
		needs := creates("experiment-template", in.Tags)
		for _, action := range in.Actions {
			needs = append(needs, need(f.account.arn("fis", "action/"+action.ActionID), nil))
		}
		pass := f.account.passRole(in.RoleARN[strings.LastIndexByte(in.RoleARN, '/')+1:])
		pass.Keys = map[string][]string{"iam:PassedToService": {"fis.amazonaws.com"}}
		return append(needs, pass)
	case "StartExperiment":
		in, err := decodeJSON[startExperimentInput](c)
		if err != nil {
			return nil
		}
		return append(creates("experiment", in.Tags), template(in.ExperimentTemplateID))
	case "DeleteExperimentTemplate":
		return []policy.Request{template(experimentTemplatePath.FindStringSubmatch(c.form.value)[1])}
	case "GetExperiment":
		id := experimentPath.FindStringSubmatch(c.form.value)[1]
		var tags map[string]string
		if e := f.experiments.rows[id]; e != nil {
			tags = e.Tags
		}
		return []policy.Request{need(f.account.arn("fis", "experiment/"+id), onResourceTags("fis", tags))}
	}
	return []policy.Request{need("*", nil)}
}
