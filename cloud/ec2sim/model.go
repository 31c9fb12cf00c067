package ec2sim

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// publishedModel is the request part of AWS's published service models: operations, parameters, their names on the wire,
// required ones, enums, limits, patterns, and the filter names that the documentation of a call lists. It is taken from
// the models of 2026, without the responses, and without the enum of instance types: EC2 sells types before the enum
// contains them. TestModelIsThePublishedOne compares it with the AWS SDK for Go, and fails when a newer SDK has more.
//
//go:embed model.json
var publishedModel []byte

// serviceModel describes the requests of a service.
type serviceModel struct {
	Protocol   string // ec2, query, json or rest-json
	Operations map[string]struct{ Input string }
	Shapes     map[string]*shape
}

// shape is the type of a parameter. Limits apply to a number's value, a text's length in characters or a list's length.
type shape struct {
	Type      string
	Members   map[string]*memberShape // of a structure
	Required  []string                // names of members
	Member    *memberShape            // of a list
	Key       string                  // of a map, the shape of its keys
	Value     string                  // of a map, the shape of its values
	Flattened bool                    // a list without the level "member"
	Enum      []string
	Min, Max  *float64
	Pattern   string

	pattern *regexp.Regexp
}

type memberShape struct {
	Shape        string
	Location     string // uri or querystring if it is not in the body
	LocationName string
	QueryName    string
	Filters      []string
}

// readModels returns publishedModel by service name.
func readModels() map[string]*serviceModel {
	var read map[string]*serviceModel
	if err := json.Unmarshal(publishedModel, &read); err != nil {
		panic(fmt.Sprintf("the service model that is built in: %v", err))
	}
	return read
}

// models returns the models by service name, with corrections.
var models = sync.OnceValue(func() map[string]*serviceModel {
	read := readModels()
	correctModels(read)
	for _, service := range read {
		for _, s := range service.Shapes {
			if s.Pattern == "" {
				continue
			}
			// The models write code points as \uXXXX, which Go spells \x{XXXX}, and ranges beyond the basic plane in a
			// form that Go's regular expressions do not support.
			text := surrogates.ReplaceAllString(s.Pattern, "")
			text = codePoint.ReplaceAllString(text, `\x{$1}`)
			s.pattern = regexp.MustCompile("^(?:" + text + ")$")
		}
	}
	return read
})

var (
	surrogates = regexp.MustCompile(`\\u[0-9A-F]{5,}-\\u[0-9A-F]{5,}`)
	codePoint  = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)
)

// checkModel refuses a request with an operation, a parameter, a value or a filter that the published model does not
// have. The error has the wording of EC2 or of the service's protocol.
func checkModel(c *call) error {
	service := models()[c.service]
	if service == nil {
		return nil // protocolOf refuses it
	}
	input := service.Shapes[service.Operations[c.action].Input]
	if input == nil {
		return nil // it takes no parameters
	}
	m := modelCheck{service: service, call: c}
	switch service.Protocol {
	case "ec2", "query":
		return m.structure("", c.form, input, "Action", "Version")
	case "json":
		var body any
		if err := json.Unmarshal(c.body, &body); err != nil {
			return refuse("SerializationException", "%v", err)
		}
		return m.jsonValue("", body, input)
	case "rest-json":
		if len(c.body) == 0 {
			return nil // the parameters are in the path
		}
		var body any
		if err := json.Unmarshal(c.body, &body); err != nil {
			return refuse("SerializationException", "%v", err)
		}
		return m.jsonValue("", body, input)
	}
	return nil
}

// modelCheck checks one request.
type modelCheck struct {
	service *serviceModel
	call    *call
}

// text checks a scalar.
func (m modelCheck) text(name, value string, s *shape) error {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		return m.invalid("Value (%s) for parameter %s is invalid. Valid values: %s", value, name, strings.Join(s.Enum, ", "))
	}
	if s.pattern != nil && !s.pattern.MatchString(value) {
		return m.invalid("Value (%s) for parameter %s is invalid. It has to match %s", value, name, s.Pattern)
	}
	return m.within(name, float64(len([]rune(value))), s)
}

// within checks a number, or a length, against the limits of a shape.
func (m modelCheck) within(name string, n float64, s *shape) error {
	if s.Min != nil && n < *s.Min {
		return m.invalid("Value (%g) for parameter %s is invalid. It has to be at least %g", n, name, *s.Min)
	}
	if s.Max != nil && n > *s.Max {
		return m.invalid("Value (%g) for parameter %s is invalid. It may be at most %g", n, name, *s.Max)
	}
	return nil
}

// filterName checks the name of a filter against those that the documentation of its call lists.
func (m modelCheck) filterName(name string, documented []string) error {
	if len(documented) == 0 {
		return nil // the model lists none: the handler checks the names
	}
	known := slices.Concat(documented, undocumentedFilters[m.call.action])
	if key, isTag := strings.CutPrefix(name, "tag:"); isTag && key != "" && (slices.Contains(known, "tag:<key>") || slices.Contains(known, "tag")) {
		return nil
	}
	if name != "tag" && slices.Contains(known, name) {
		return nil
	}
	return invalidValue("The filter '%s' is invalid", name)
}

// invalid, unknown and missing return errors in the wording of the protocol.
func (m modelCheck) invalid(format string, args ...any) error {
	if m.service.Protocol == "ec2" {
		return invalidValue(format, args...)
	}
	return refuse(validationCode(m.call.service), format, args...)
}

func (m modelCheck) unknown(name string) error {
	switch m.service.Protocol {
	case "ec2":
		return refuse("UnknownParameter", "The parameter %s is not recognized", name)
	case "json", "rest-json":
		return refuse("SerializationException", "Unexpected field %s", name)
	}
	return refuse("MalformedInput", "The parameter %s is not recognized", name)
}

func (m modelCheck) missing(name string) error {
	if m.service.Protocol == "ec2" || m.call.service == "sqs" { // SQS API reference, "Common errors"
		return missingParameter(name)
	}
	return refuse(validationCode(m.call.service), "Value at '%s' failed to satisfy constraint: Member must not be null", name)
}

// validationCode returns a service's error code for a request that violates a constraint (each service's reference,
// "Common errors").
func validationCode(service string) string {
	switch service {
	case "iam", "sts", "autoscaling":
		return "ValidationError"
	case "sqs":
		return "InvalidParameterValue"
	case "pricing", "eks":
		return "InvalidParameterException"
	}
	return "ValidationException"
}
