package v1_test

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestReadHooks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, text string
		// err is a part of the error; empty if there is none.
		err string
	}{
		"Empty":     {reason: "no hooks", text: ""},
		"YAML":      {reason: "a list in YAML", text: "- {name: tell, when: AfterReady, http: {url: 'https://hooks.example.com/up'}}\n- {name: dump, when: BeforeDrain, job: {namespace: ops, cronJob: dump, onNode: true}, timeout: 5m, failurePolicy: Fail}"},
		"JSON":      {reason: "or in JSON", text: `[{"name":"tell","when":"AfterReady","http":{"url":"http://10.0.0.1:80/"}}]`},
		"Field":     {reason: "a misspelt field is not overlooked", text: "[{name: a, when: AfterReady, http: {url: 'http://a'}, failurePolice: Fail}]", err: "failurePolice"},
		"Point":     {reason: "a point that does not exist", text: "[{name: a, when: BeforeReady, http: {url: 'http://a'}}]", err: `tenon.sh/hooks[0]: when: "BeforeReady" must be AfterReady or BeforeDrain`},
		"Both":      {reason: "one thing at a time", text: "[{name: a, when: AfterReady, http: {url: 'http://a'}, job: {namespace: b, cronJob: c}}]", err: "one of http and job is needed"},
		"Neither":   {reason: "and not nothing", text: "[{name: a, when: AfterReady}]", err: "one of http and job is needed"},
		"URL":       {reason: "a relative address leads nowhere", text: "[{name: a, when: AfterReady, http: {url: /up}}]", err: "http.url:"},
		"Scheme":    {reason: "only HTTP is spoken", text: "[{name: a, when: AfterReady, http: {url: 'file:///etc/passwd'}}]", err: "http.url:"},
		"Policy":    {reason: "a policy that does not exist", text: "[{name: a, when: AfterReady, http: {url: 'http://a'}, failurePolicy: Abort}]", err: `failurePolicy: "Abort" must be Ignore or Fail`},
		"Timeout":   {reason: "nobody waits for ever", text: "[{name: a, when: AfterReady, http: {url: 'http://a'}, timeout: 31m}]", err: "timeout: 31m0s must be more than nothing and at most 30m0s"},
		"Name":      {reason: "the name becomes a part of the Job's", text: "[{name: A_b, when: AfterReady, http: {url: 'http://a'}}]", err: `name: "A_b" must be`},
		"Twice":     {reason: "names tell hooks apart", text: "[{name: a, when: AfterReady, http: {url: 'http://a'}}, {name: a, when: BeforeDrain, http: {url: 'http://a'}}]", err: `tenon.sh/hooks[1]: name: "a" is the name of two hooks`},
		"Many":      {reason: "a node has no time for hundreds", text: "[" + strings.Repeat("{name: a, when: AfterReady, http: {url: 'http://a'}},", 9) + "]", err: "has 9 hooks, more than 8"},
		"NotList":   {reason: "a list is needed", text: "tell: me", err: "must be a list of hooks"},
		"JobFields": {reason: "a Job needs a place", text: "[{name: a, when: AfterReady, job: {cronJob: c}}]", err: "job: namespace and cronJob are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks, err := v1.ReadHooks(test.text)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err) || hooks != nil) {
				t.Errorf("%s: %v, %v, want an error with %q", test.reason, hooks, err, test.err)
			}
		})
	}
}

func TestHookDefaults(t *testing.T) {
	t.Parallel()
	pool := &v1.NodePool{}
	pool.Annotations = map[string]string{v1.HooksAnnotationKey: "[{name: a, when: AfterReady, http: {url: 'http://a'}}, {name: b, when: BeforeDrain, http: {url: 'http://b'}, timeout: 2m, failurePolicy: Fail}]"}
	before, err := pool.HooksAt(v1.BeforeDrain)
	if err != nil || len(before) != 1 || before[0].Name != "b" || before[0].Within() != 2*time.Minute || !before[0].Fails() {
		t.Errorf("before a drain: %+v, %v", before, err)
	}
	after, err := pool.HooksAt(v1.AfterReady)
	if err != nil || len(after) != 1 || after[0].Within() != time.Minute || after[0].Fails() {
		t.Errorf("after a node has come up: %+v, %v", after, err)
	}
}
