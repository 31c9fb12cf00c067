package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// document wraps statements.
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
		{"nothing is about it", `{"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}`,
			policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, policy.ImplicitDeny},
		{"actions have wildcards and no case", `{"Effect": "Allow", "Action": "EC2:terminate*", "Resource": "*"}`,
			policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, policy.Allow},
		{"a Deny wins over an Allow", `{"Effect": "Deny", "Action": "*", "Resource": "arn:aws:ec2:*:*:instance/i-?"}, {"Effect": "Allow", "Action": "*", "Resource": "*"}`,
			policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, policy.ExplicitDeny},
		{"a wildcard does not reach over a colon", `{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:instance/i-1:x"}`,
			policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, policy.ImplicitDeny},
		{"what has no resource is allowed by * alone", `{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:instance/*"}`,
			policy.Request{Action: "ec2:DescribeInstances", Resource: "*"}, policy.ImplicitDeny},
		{"an ARN has a case", `{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:INSTANCE/*"}`,
			policy.Request{Action: "ec2:TerminateInstances", Resource: instance}, policy.ImplicitDeny},
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
		{"equal", `"StringEquals": {"aws:RequestTag/team": ["red", "blue"]}`, map[string][]string{"aws:RequestTag/team": {"blue"}}, true},
		{"key names have no case", `"StringEquals": {"AWS:requesttag/Team": "blue"}`, map[string][]string{"aws:RequestTag/team": {"blue"}}, true},
		{"values have", `"StringEquals": {"aws:RequestTag/team": "Blue"}`, map[string][]string{"aws:RequestTag/team": {"blue"}}, false},
		{"unless they are compared without", `"StringEqualsIgnoreCase": {"aws:RequestTag/team": "Blue"}`, map[string][]string{"aws:RequestTag/team": {"blue"}}, true},
		{"a missing key is not equal", `"StringEquals": {"aws:RequestTag/team": "blue"}`, nil, false},
		{"a missing key is not like anything", `"StringLike": {"aws:RequestTag/team": "*"}`, nil, false},
		{"an empty tag is like anything", `"StringLike": {"aws:RequestTag/team": "*"}`, map[string][]string{"aws:RequestTag/team": {""}}, true},
		{"IfExists lets a missing key pass", `"StringEqualsIfExists": {"aws:RequestTag/team": "blue"}`, nil, true},
		{"but not another value", `"StringEqualsIfExists": {"aws:RequestTag/team": "blue"}`, map[string][]string{"aws:RequestTag/team": {"red"}}, false},
		{"a missing key is unequal", `"StringNotEquals": {"aws:RequestTag/team": "blue"}`, nil, true},
		{"unequal to all of the list", `"StringNotEquals": {"aws:RequestTag/team": ["red", "blue"]}`, map[string][]string{"aws:RequestTag/team": {"blue"}}, false},
		{"not like", `"StringNotLike": {"aws:RequestTag/team": "b*"}`, map[string][]string{"aws:RequestTag/team": {"red"}}, true},
		{"all values", `"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`, map[string][]string{"aws:TagKeys": {"a", "b"}}, true},
		{"all values but one", `"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`, map[string][]string{"aws:TagKeys": {"a", "c"}}, false},
		{"all of no values", `"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`, nil, true},
		{"any value", `"ForAnyValue:StringLike": {"aws:TagKeys": "b*"}`, map[string][]string{"aws:TagKeys": {"a", "bc"}}, true},
		{"any of no values", `"ForAnyValue:StringLike": {"aws:TagKeys": "b*"}`, nil, false},
		{"Null true wants the key absent", `"Null": {"aws:RequestTag/team": "true"}`, map[string][]string{"aws:RequestTag/team": {"blue"}}, false},
		{"Null false wants it present", `"Null": {"aws:RequestTag/team": "false"}`, map[string][]string{"aws:RequestTag/team": {"blue"}}, true},
		{"Bool", `"Bool": {"aws:ResourceTag/on": "true"}`, map[string][]string{"aws:ResourceTag/on": {"True"}}, true},
		{"ARNs part by part", `"ArnLike": {"aws:ResourceTag/of": "arn:aws:ec2:*:*:rule/a-*"}`, map[string][]string{"aws:ResourceTag/of": {"arn:aws:ec2:r:1:rule/a-b"}}, true},
		{"numbers", `"NumericLessThanEquals": {"aws:ResourceTag/n": "10"}`, map[string][]string{"aws:ResourceTag/n": {"9.5"}}, true},
		{"numbers that are none", `"NumericLessThanEquals": {"aws:ResourceTag/n": "10"}`, map[string][]string{"aws:ResourceTag/n": {"few"}}, false},
		{"every operator has to hold", `"StringEquals": {"aws:RequestTag/a": "1"}, "StringLike": {"aws:RequestTag/b": "*"}`, map[string][]string{"aws:RequestTag/a": {"1"}}, false},
		{"every key has to hold", `"StringEquals": {"aws:RequestTag/a": "1", "aws:RequestTag/b": "2"}`, map[string][]string{"aws:RequestTag/a": {"1"}, "aws:RequestTag/b": {"1"}}, false},
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

// TestUnknownIsRefused: what is not understood must not become an Allow.
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

// TestADenyCannotBeOutvoted: whatever else there is, a statement that denies everything leaves nothing.
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
