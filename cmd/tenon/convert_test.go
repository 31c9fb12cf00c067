package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/convert"
)

// old has one Provisioner whose nodes take their instance profile from a setting.
const old = `apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec: {providerRef: {name: default}, ttlSecondsUntilExpired: 3600, limits: {resources: {cpu: 100}}}
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: default}
spec: {subnetSelector: {team: shop}, securityGroupSelector: {team: shop}}
`

// converts runs `tenon convert` with arguments.
func converts(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{"convert"}, args...))
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestConvertPrintsManifestsAndNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old.yaml"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile, notes, err := converts(t, "", "-f", dir, "--role", "nodes")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apiVersion: karpenter.sh/v1\n", "kind: EC2NodeClass\n", "\n---\n", "role: nodes\n", "expireAfter: 3600s\n", "cpu: \"100\"\n"} {
		if !strings.Contains(fromFile, want) {
			t.Errorf("the manifests lack %q:\n%s", want, fromFile)
		}
	}
	if want := "note: Provisioner default: spec.ttlSecondsUntilExpired: is now spec.template.spec.expireAfter."; !strings.Contains(notes, want) {
		t.Errorf("the notes lack %q:\n%s", want, notes)
	}
	fromStdin, _, err := converts(t, old, "-f", "-", "--role", "nodes")
	if err != nil || fromStdin != fromFile {
		t.Errorf("standard input gives something else: %v\n%s", err, fromStdin)
	}
	again, notes, err := converts(t, fromFile, "-f", "-")
	if err != nil || again != fromFile || notes != "" {
		t.Errorf("converting v1 changes it: %v\n%s\n%s", err, notes, again)
	}
	asJSON, notes, err := converts(t, old, "-f", "-", "--role", "nodes", "-o", "json")
	if err != nil || notes != "" {
		t.Fatalf("as JSON: %v, %s", err, notes)
	}
	var result convert.Result
	if err := json.Unmarshal([]byte(asJSON), &result); err != nil || len(result.Objects) != 2 || len(result.Notes) == 0 {
		t.Errorf("as JSON: %v, %d objects, %d notes", err, len(result.Objects), len(result.Notes))
	}
}

func TestConvertFailsWhole(t *testing.T) {
	t.Parallel()
	out, _, err := converts(t, old, "-f", "-")
	if err == nil || out != "" {
		t.Fatalf("error %v and %q, want an error and no manifests", err, out)
	}
	for _, want := range []string{"AWSNodeTemplate default", "spec.instanceProfile", "--role", "standard input, document 2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestConvertFlags(t *testing.T) {
	t.Parallel()
	for reason, row := range map[string]struct {
		args []string
		says string
	}{
		"nothing to convert":         {args: nil, says: "-f FILE, --cluster or --from-asg"},
		"two sources":                {args: []string{"-f", "a", "--cluster"}, says: "exclude each other"},
		"node groups and files":      {args: []string{"-f", "a", "--from-asg", "--cluster-name", "shop"}, says: "exclude each other"},
		"node groups of no cluster":  {args: []string{"--from-asg"}, says: "--cluster-name or TENON_CLUSTER"},
		"a group without --from-asg": {args: []string{"-f", "a", "--node-group", "web"}, says: "are for --from-asg"},
		"a role for node groups":     {args: []string{"--from-asg", "--cluster-name", "shop", "--role", "nodes"}, says: "the node groups' own"},
		"two identities":             {args: []string{"-f", "a", "--role", "a", "--instance-profile", "b"}, says: "exclude each other"},
		"standard input twice":       {args: []string{"-f", "-", "-f", "-"}, says: "only once"},
		"a format that is not there": {args: []string{"-f", "-", "-o", "table"}, says: "yaml or json"},
		"a file that is not there":   {args: []string{"-f", "/nowhere/a.yaml"}, says: "no such file"},
		"what is not YAML":           {args: []string{"-f", "-"}, says: "line 2"},
	} {
		if _, _, err := converts(t, "a: b\nc: [", row.args...); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: error %v, want one that says %q", reason, err, row.says)
		}
	}
}
