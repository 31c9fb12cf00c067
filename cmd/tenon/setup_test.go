package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/lab/labtest"
	"github.com/tenon-sh/tenon/workflows"
)

// TestSetup prepares a namespace of a real Temporal server step by step, and has Temporal's own command look at it.
func TestSetup(t *testing.T) {
	l := labtest.Start(t, lab.Options{Components: []lab.Component{lab.Temporal}, Bare: true})
	t.Setenv("TEMPORAL_ADDRESS", l.TemporalAddress())
	t.Setenv("TEMPORAL_NAMESPACE", "fleet")
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
	temporals := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join("..", "..", "bin", "temporal"), append(args, "--namespace", "fleet")...).CombinedOutput()
		if err != nil {
			t.Fatalf("temporal %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	attributes := slices.Sorted(slices.Values(workflows.Attributes()))
	for _, step := range []struct {
		name   string
		before func()
		args   []string
		// namespace, retention and attribute are the states of the parts; an empty one is not reported.
		namespace, retention, attribute string
		fails                           string
	}{
		{name: "a look at a server without the namespace", args: []string{"--check"}, namespace: temporal.Missing, fails: "1 of 1 parts"},
		{name: "everything is created", namespace: temporal.Created, retention: temporal.Created, attribute: temporal.Created},
		{name: "a second time there is nothing to do", namespace: temporal.Present, retention: temporal.Present, attribute: temporal.Present},
		{name: "all is well", args: []string{"--check"}, namespace: temporal.Present, retention: temporal.Present, attribute: temporal.Present},
		{name: "a shorter retention changes nothing", args: []string{"--retention", "24h"}, namespace: temporal.Present, retention: temporal.Present, attribute: temporal.Present},
		{name: "a look finds that the retention is too short", args: []string{"--check", "--retention", "1440h"}, namespace: temporal.Present, retention: temporal.Different,
			attribute: temporal.Present, fails: "1 of 10 parts"},
		{name: "the retention is raised", args: []string{"--retention", "1440h"}, namespace: temporal.Present, retention: temporal.Changed, attribute: temporal.Present},
		{name: "an hour is too short for Temporal", args: []string{"--retention", "1h"}, fails: "for a day at least"},
	} {
		var out bytes.Buffer
		command := newRootCommand()
		command.SetOut(&out)
		command.SetArgs(append([]string{"setup", "-o", "json"}, step.args...))
		err := command.ExecuteContext(t.Context())
		if step.fails == "" && err != nil || step.fails != "" && (err == nil || !strings.Contains(err.Error(), step.fails)) {
			t.Fatalf("%s: error %v, want %q", step.name, err, step.fails)
		}
		got := map[string]string{}
		var parts []temporal.Part
		if out.Len() > 0 {
			if err := json.Unmarshal(out.Bytes(), &parts); err != nil {
				t.Fatalf("%s: %v\n%s", step.name, err, out.String())
			}
		}
		for _, part := range parts {
			got[part.Kind+" "+part.Name] = part.State
		}
		want := map[string]string{}
		for part, state := range map[string]string{"namespace fleet": step.namespace, "retention fleet": step.retention} {
			if state != "" {
				want[part] = state
			}
		}
		for _, name := range attributes {
			if step.attribute != "" {
				want["search attribute "+name] = step.attribute
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if described := temporals("operator", "namespace", "describe"); !strings.Contains(described, "1440h0m0s") {
		t.Errorf("temporal knows another retention than 60 days:\n%s", described)
	}
	listed := temporals("operator", "search-attribute", "list")
	for _, name := range attributes {
		if !strings.Contains(listed, name) {
			t.Errorf("temporal does not know the search attribute %s:\n%s", name, listed)
		}
	}
	temporals("operator", "search-attribute", "remove", "--yes", "--name", "Zone")
	var out bytes.Buffer
	command := newRootCommand()
	command.SetOut(&out)
	command.SetArgs([]string{"setup"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if created := strings.Contains(line, temporal.Created); created != strings.Contains(line, " Zone ") {
			t.Errorf("after Zone was removed: %s", line)
		}
	}
}
