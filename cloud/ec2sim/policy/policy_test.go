package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// document parses a policy with the statements.
func document(t *testing.T, statements string) []*policy.Document {
	t.Helper()
	d, err := policy.Parse([]byte(`{"Version": "2012-10-17", "Statement": [` + statements + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return []*policy.Document{d}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const instance = "arn:aws:ec2:us-east-1:123456789012:instance/i-1"
	for _, tc := range []struct {
		why        string
		statements string
		request    policy.Request
		want       policy.Decision
	}{
		{why: "nothing is about it", statements: `{"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}`,
			request: policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, want: policy.ImplicitDeny},
		{why: "actions have wildcards and no case", statements: `{"Effect": "Allow", "Action": "EC2:terminate*", "Resource": "*"}`,
			request: policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, want: policy.Allow},
		{why: "a Deny wins over an Allow", statements: `{"Effect": "Deny", "Action": "*", "Resource": "arn:aws:ec2:*:*:instance/i-?"}, {"Effect": "Allow", "Action": "*", "Resource": "*"}`,
			request: policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, want: policy.ExplicitDeny},
		{why: "a wildcard does not reach over a colon", statements: `{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:instance/i-1:x"}`,
			request: policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, want: policy.ImplicitDeny},
		{why: "what has no resource is allowed by * alone", statements: `{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:instance/*"}`,
			request: policy.Request{Action: "ec2:DescribeInstances", Resource: "*"}, want: policy.ImplicitDeny},
		{why: "an ARN has a case", statements: `{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:INSTANCE/*"}`,
			request: policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, want: policy.ImplicitDeny},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			if got := policy.Decide(document(t, tc.statements), tc.request); got != tc.want {
				t.Errorf("decision %d, want %d", got, tc.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why       string
		condition string
		keys      map[string][]string
		want      bool
	}{
		{why: "equal", condition: `"StringEquals": {"aws:RequestTag/team": ["red", "blue"]}`,
			keys: map[string][]string{"aws:RequestTag/team": {"blue"}}, want: true},
		{why: "key names have no case", condition: `"StringEquals": {"AWS:requesttag/Team": "blue"}`,
			keys: map[string][]string{"aws:RequestTag/team": {"blue"}}, want: true},
		{why: "values have", condition: `"StringEquals": {"aws:RequestTag/team": "Blue"}`, keys: map[string][]string{"aws:RequestTag/team": {"blue"}}, want: false},
		{why: "unless they are compared without", condition: `"StringEqualsIgnoreCase": {"aws:RequestTag/team": "Blue"}`,
			keys: map[string][]string{"aws:RequestTag/team": {"blue"}}, want: true},
		{why: "a missing key is not equal", condition: `"StringEquals": {"aws:RequestTag/team": "blue"}`, want: false},
		{why: "a missing key is not like anything", condition: `"StringLike": {"aws:RequestTag/team": "*"}`, want: false},
		{why: "an empty tag is like anything", condition: `"StringLike": {"aws:RequestTag/team": "*"}`,
			keys: map[string][]string{"aws:RequestTag/team": {""}}, want: true},
		{why: "IfExists lets a missing key pass", condition: `"StringEqualsIfExists": {"aws:RequestTag/team": "blue"}`, want: true},
		{why: "but not another value", condition: `"StringEqualsIfExists": {"aws:RequestTag/team": "blue"}`,
			keys: map[string][]string{"aws:RequestTag/team": {"red"}}, want: false},
		{why: "a missing key is unequal", condition: `"StringNotEquals": {"aws:RequestTag/team": "blue"}`, want: true},
		{why: "unequal to all of the list", condition: `"StringNotEquals": {"aws:RequestTag/team": ["red", "blue"]}`,
			keys: map[string][]string{"aws:RequestTag/team": {"blue"}}, want: false},
		{why: "not like", condition: `"StringNotLike": {"aws:RequestTag/team": "b*"}`, keys: map[string][]string{"aws:RequestTag/team": {"red"}}, want: true},
		{why: "all values", condition: `"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`, keys: map[string][]string{"aws:TagKeys": {"a", "b"}}, want: true},
		{why: "all values but one", condition: `"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`,
			keys: map[string][]string{"aws:TagKeys": {"a", "c"}}, want: false},
		{why: "all of no values", condition: `"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`, want: true},
		{why: "any value", condition: `"ForAnyValue:StringLike": {"aws:TagKeys": "b*"}`, keys: map[string][]string{"aws:TagKeys": {"a", "bc"}}, want: true},
		{why: "any of no values", condition: `"ForAnyValue:StringLike": {"aws:TagKeys": "b*"}`, want: false},
		{why: "Null true wants the key absent", condition: `"Null": {"aws:RequestTag/team": "true"}`,
			keys: map[string][]string{"aws:RequestTag/team": {"blue"}}, want: false},
		{why: "Null false wants it present", condition: `"Null": {"aws:RequestTag/team": "false"}`,
			keys: map[string][]string{"aws:RequestTag/team": {"blue"}}, want: true},
		{why: "Bool", condition: `"Bool": {"aws:ResourceTag/on": "true"}`, keys: map[string][]string{"aws:ResourceTag/on": {"True"}}, want: true},
		{why: "ARNs part by part", condition: `"ArnLike": {"aws:ResourceTag/of": "arn:aws:ec2:*:*:rule/a-*"}`,
			keys: map[string][]string{"aws:ResourceTag/of": {"arn:aws:ec2:r:1:rule/a-b"}}, want: true},
		{why: "numbers", condition: `"NumericLessThanEquals": {"aws:ResourceTag/n": "10"}`, keys: map[string][]string{"aws:ResourceTag/n": {"9.5"}}, want: true},
		{why: "numbers that are none", condition: `"NumericLessThanEquals": {"aws:ResourceTag/n": "10"}`,
			keys: map[string][]string{"aws:ResourceTag/n": {"few"}}, want: false},
		{why: "every operator has to hold", condition: `"StringEquals": {"aws:RequestTag/a": "1"}, "StringLike": {"aws:RequestTag/b": "*"}`,
			keys: map[string][]string{"aws:RequestTag/a": {"1"}}, want: false},
		{why: "every key has to hold", condition: `"StringEquals": {"aws:RequestTag/a": "1", "aws:RequestTag/b": "2"}`,
			keys: map[string][]string{"aws:RequestTag/a": {"1"}, "aws:RequestTag/b": {"1"}}, want: false},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			documents := document(t, `{"Effect": "Allow", "Action": "ec2:CreateTags", "Resource": "*", "Condition": {`+tc.condition+`}}`)
			got := policy.Decide(documents, policy.Request{Action: "ec2:CreateTags", Resource: "*", Keys: tc.keys})
			if (got == policy.Allow) != tc.want {
				t.Errorf("%s with %v: decision %d, want it to hold: %v", tc.condition, tc.keys, got, tc.want)
			}
		})
	}
}

// TestUnknownIsRefused checks that a policy with unknown elements is refused, so that they cannot become an Allow.
func TestUnknownIsRefused(t *testing.T) {
	t.Parallel()
	for why, statement := range map[string]string{
		"an operator":            `{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"DateLessThan": {"aws:TagKeys": "x"}}}`,
		"a quantifier":           `{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"ForSomeValues:StringEquals": {"aws:TagKeys": "x"}}}`,
		"a key":                  `{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"StringEquals": {"aws:SourceVpc": "x"}}}`,
		"a tag without a name":   `{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"StringEquals": {"aws:RequestTag/": "x"}}}`,
		"an element":             `{"Effect": "Allow", "NotAction": "ec2:*", "Resource": "*"}`,
		"an effect":              `{"Effect": "Perhaps", "Action": "ec2:*", "Resource": "*"}`,
		"no action":              `{"Effect": "Allow", "Resource": "*"}`,
		"a resource, not an ARN": `{"Effect": "Allow", "Action": "ec2:*", "Resource": "instance/*"}`,
		"a placeholder":          `{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:${AWS_PARTITION}:ec2:*:*:instance/*"}`,
		"a variable in a value":  `{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"StringEquals": {"aws:TagKeys": "${aws:username}"}}}`,
		"a number that is none":  `{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"NumericEquals": {"aws:TagKeys": "few"}}}`,
		"a Null that is none":    `{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"Null": {"aws:TagKeys": "maybe"}}}`,
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			if _, err := policy.Parse([]byte(`{"Version": "2012-10-17", "Statement": [` + statement + `]}`)); err == nil {
				t.Errorf("%s is accepted", statement)
			}
		})
	}
}

// TestADenyCannotBeOutvoted checks that a statement that denies everything wins over all other statements.
func TestADenyCannotBeOutvoted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		statements := []string{`{"Effect": "Deny", "Action": "*", "Resource": "*"}`}
		for range rapid.IntRange(0, 4).Draw(r, "others") {
			action := rapid.SampledFrom([]string{"*", "ec2:*", "ec2:RunInstances"}).Draw(r, "action")
			statements = append(statements, fmt.Sprintf(`{"Effect": "Allow", "Action": %q, "Resource": "*"}`, action))
		}
		statements = rapid.Permutation(statements).Draw(r, "order")
		d, err := policy.Parse([]byte(`{"Version": "2012-10-17", "Statement": [` + strings.Join(statements, ",") + `]}`))
		if err != nil {
			r.Fatal(err)
		}
		if got := policy.Decide([]*policy.Document{d}, policy.Request{Action: "ec2:RunInstances", Resource: "*"}); got != policy.ExplicitDeny {
			r.Fatalf("decision %d", got)
		}
	})
}
