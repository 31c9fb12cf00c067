package bundle

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shapes are secrets in the shapes that secrets have, each with what has to be gone of it.
var shapes = map[string]struct{ text, secret string }{
	"Password":     {`could not log in: password=hunter2-staple`, "hunter2-staple"},
	"Quoted":       {`db_password: "correct horse battery"`, "horse"},
	"Escaped":      {`{\"apiKey\":\"k-123 456\",\"x\":1}`, "k-123"},
	"Flag":         {`run --ui-token s3cr3t-word --x`, "s3cr3t-word"},
	"Bearer":       {`Authorization: Bearer abcdef0123456789`, "abcdef0123456789"},
	"Basic":        {`sent basic dXNlcjpwYXNz to it`, "dXNlcjpwYXNz"},
	"URL":          {`dial https://robot:sesame@temporal:7233 failed`, "sesame"},
	"WebToken":     {`got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln back`, "eyJzdWIiOiIxIn0"},
	"AccessKey":    {`key AKIAIOSFODNN7EXAMPLE was refused`, "AKIAIOSFODNN7EXAMPLE"},
	"SecretKey":    {`with wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY now`, "bPxRfiCYEXAMPLEKEY"},
	"Hexadecimal":  {`key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`, "9f86d081884c7d65"},
	"PEM":          {"-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----", "MIIB"},
	"GitHub":       {`clone with ghp_16C7e42F292c6912E7710c838347Ae178B4a`, "16C7e42F292c6912"},
	"SessionToken": {`X-Amz-Security-Token=IQoJb3JpZ2luX2VjEA&X-Amz-Date=1`, "IQoJb3JpZ2luX2VjEA"},
}

func TestRedactorFindsShapes(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Redactor
			got := r.Text(shape.text)
			if strings.Contains(got, shape.secret) || r.count == 0 {
				t.Errorf("%q became %q, %d values replaced", shape.text, got, r.count)
			}
		})
	}
}

// TestRedactorKeepsWhatHelps checks that what people need to understand a cluster is not taken for a secret.
func TestRedactorKeepsWhatHelps(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"node ip-10-0-1-2.ec2.internal of claim default-7g5xk is i-0123456789abcdef0",
		"REGISTRY/tenon@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"uid 6f1c6a0e-9a53-4a52-8c43-3f6b1d1f5f0a, run 0199c7a5-8f0e-7d3c-a1b2-5d6e7f8091a2",
		"arn:aws:iam::111122223333:role/KarpenterNodeRole-blue",
		"karpenter_nodeclaims_created_total{nodepool=\"default\"} 12",
		"pods are waiting for c6a.32xlarge in us-east-1a: InsufficientInstanceCapacity",
		"github.com/tenon-sh/tenon/activities.(*planner).Plan\n\t/src/activities/plan.go:88",
		"https://sqs.us-east-1.amazonaws.com/111122223333/blue",
		"a basic question: which token is it?",
	} {
		var r Redactor
		if got := r.Text(text); got != text || r.count != 0 {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestRedactorReadsLinesOfJSON plants a word without any shape behind the names that secrets have, at any depth.
func TestRedactorReadsLinesOfJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"password", "apiKey", "API_KEY", "clientSecret", "sessionToken", "Authorization", "private-key", "DB_PASSWD", "tls.key"}).Draw(t, "name")
		var line any = map[string]any{name: "xyzzy plugh", "claim": "web-1"}
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			if rapid.Bool().Draw(t, "list") {
				line = map[string]any{"inner": []any{line}}
			} else {
				line = map[string]any{"inner": line}
			}
		}
		encoded, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		var r Redactor
		got := r.Line(string(encoded))
		if strings.Contains(got, "xyzzy") || !strings.Contains(got, "web-1") {
			t.Fatalf("%s became %s", encoded, got)
		}
	})
}

// TestRedactorInAnyText puts a secret with its name between other words.
func TestRedactorInAnyText(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-z(){}.,:=/-]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Z][a-z]{3}[0-9]{4}`).Draw(t, "secret")
		name := rapid.SampledFrom([]string{"password=", "token: ", "secret = ", "--api-key ", "credentials: "}).Draw(t, "name")
		text := word.Draw(t, "before") + " " + name + secret + " " + word.Draw(t, "after")
		var r Redactor
		if got := r.Text(text); strings.Contains(got, secret) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
