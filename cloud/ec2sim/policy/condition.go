package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// condition is one operator with one key and its values.
type condition struct {
	key    string // in lower case
	values []string
	// matches compares one value of the request with one of the policy; nil for Null, which only checks whether the key
	// is present.
	matches func(want, have string) bool
	// negated operators hold if no value of the policy matches or, except with ForAnyValue, if the request does not have
	// the key.
	negated  bool
	ifExists bool
	each     quantifier
}

// quantifier says how many of the request's values have to match.
type quantifier int

const (
	single    quantifier = iota // keys with one value
	allValues                   // ForAllValues: all of them; holds if there are none
	anyValue                    // ForAnyValue: at least one
)

// operators are the supported condition operators, without the negated ones.
var operators = map[string]func(want, have string) bool{
	"StringEquals":             func(want, have string) bool { return want == have },
	"StringEqualsIgnoreCase":   strings.EqualFold,
	"StringLike":               matchWildcard,
	"ArnEquals":                matchARN, // like ArnLike, as IAM documents it
	"ArnLike":                  matchARN,
	"Bool":                     strings.EqualFold,
	"NumericEquals":            numeric(func(want, have float64) bool { return have == want }),
	"NumericLessThan":          numeric(func(want, have float64) bool { return have < want }),
	"NumericLessThanEquals":    numeric(func(want, have float64) bool { return have <= want }),
	"NumericGreaterThan":       numeric(func(want, have float64) bool { return have > want }),
	"NumericGreaterThanEquals": numeric(func(want, have float64) bool { return have >= want }),
}

// negations maps each negated operator to its opposite.
var negations = map[string]string{
	"StringNotEquals": "StringEquals", "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase", "StringNotLike": "StringLike",
	"ArnNotEquals": "ArnEquals", "ArnNotLike": "ArnLike", "NumericNotEquals": "NumericEquals",
}

// knownKeys are the condition keys that the simulator sets in its requests, in lower case. A key that ends with / is a
// prefix, followed by the key of a tag.
var knownKeys = []string{
	"aws:requestedregion", "aws:requesttag/", "aws:resourcetag/", "aws:tagkeys",
	"ec2:createaction", "ec2:region", "ec2:resourcetag/", "iam:passedtoservice", "iam:resourcetag/",
}

func numeric(compare func(want, have float64) bool) func(want, have string) bool {
	return func(want, have string) bool {
		w, errWant := strconv.ParseFloat(want, 64)
		h, errHave := strconv.ParseFloat(have, 64)
		return errWant == nil && errHave == nil && compare(w, h)
	}
}

func parseCondition(operator, key string, values []string) (condition, error) {
	c := condition{key: strings.ToLower(key), values: values}
	name := operator
	if rest, ok := strings.CutPrefix(name, "ForAllValues:"); ok {
		name, c.each = rest, allValues
	} else if rest, ok := strings.CutPrefix(name, "ForAnyValue:"); ok {
		name, c.each = rest, anyValue
	}
	name, c.ifExists = strings.CutSuffix(name, "IfExists")
	if positive, ok := negations[name]; ok {
		name, c.negated = positive, true
	}
	var known bool
	if c.matches, known = operators[name]; !known && operator != "Null" {
		return c, fmt.Errorf("condition operator %q is not known", operator)
	}
	if !anyOf(knownKeys, func(k string) bool {
		if strings.HasSuffix(k, "/") {
			return strings.HasPrefix(c.key, k) && len(c.key) > len(k)
		}
		return k == c.key
	}) {
		return c, fmt.Errorf("condition key %q is not known", key)
	}
	if len(values) == 0 {
		return c, fmt.Errorf("condition %s on %s has no values", operator, key)
	}
	for _, value := range values {
		if err := c.checkValue(name, value); err != nil {
			return c, err
		}
	}
	return c, noVariable(key)
}

// checkValue refuses values that the operator could never match.
func (c *condition) checkValue(operator, value string) error {
	switch {
	case operator == "Null" || operator == "Bool":
		if value != "true" && value != "false" {
			return fmt.Errorf("%s on %s: %q is neither true nor false", operator, c.key, value)
		}
	case strings.HasPrefix(operator, "Numeric"):
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("%s on %s: %w", operator, c.key, err)
		}
	}
	return noVariable(value)
}

// holds evaluates the condition. keys are in lower case.
func (c *condition) holds(keys map[string][]string) bool {
	have, exists := keys[c.key]
	exists = exists && len(have) > 0
	if c.matches == nil { // Null: "true" requires that the key is absent
		return anyOf(c.values, func(want string) bool { return (want == "true") == !exists })
	}
	if !exists {
		return c.ifExists || c.each == allValues || c.negated && c.each == single
	}
	fits := func(value string) bool {
		return anyOf(c.values, func(want string) bool { return c.matches(want, value) }) != c.negated
	}
	if c.each == anyValue || c.each == single && !c.negated {
		return anyOf(have, fits)
	}
	return !anyOf(have, func(value string) bool { return !fits(value) })
}

// noVariable refuses policy variables, which includes placeholders that have not been filled in.
func noVariable(text string) error {
	if strings.Contains(text, "${") {
		return fmt.Errorf("%q has a policy variable, which is not supported", text)
	}
	return nil
}
