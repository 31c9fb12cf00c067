package ui_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/ui"
	"github.com/tenon-sh/tenon/workflows"
)

// TestCheck shows that Check finds what is there and reports what is not, on one workflow that no worker runs.
func TestCheck(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	server, err := lab.Start(ctx, lab.Options{Dir: t.TempDir(), Bin: filepath.Join("..", "..", "bin"), Components: []lab.Component{lab.Temporal}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	env := server.Env()
	c, err := client.DialContext(ctx, client.Options{HostPort: server.TemporalAddress(), Namespace: env["TEMPORAL_NAMESPACE"]})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const id = "blue/drain/ip-10-0-0-1"
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: "blue", StaticSummary: "drain of a test", StaticDetails: "asked for by nobody",
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrCluster.ValueSet("blue"), workflows.AttrZone.ValueSet("us-east-1a")),
	}, workflows.DrainType)
	if err != nil {
		t.Fatal(err)
	}

	picture := filepath.Join(t.TempDir(), "workflow.png")
	want := ui.Expectation{URL: server.UIURL(), Namespace: env["TEMPORAL_NAMESPACE"], Query: `TenonCluster="blue"`, Workflows: []ui.Workflow{{
		ID: id, Timeline: []string{workflows.DrainType}, Details: []string{"drain of a test", "asked for by nobody"},
		Attributes: map[string]string{"TenonCluster": "blue", "Zone": "us-east-1a"}, Screenshot: picture,
	}}}
	if err := ui.Check(ctx, want); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(picture); err != nil || !strings.HasPrefix(string(data), "\x89PNG") {
		t.Errorf("no picture was saved: %v", err)
	}

	missing := want
	missing.Patience = 3 * time.Second
	missing.Workflows = []ui.Workflow{{ID: id, Details: []string{"asked for by a person"}}}
	if err := ui.Check(ctx, missing); err == nil || !strings.Contains(err.Error(), "asked for by a person") {
		t.Errorf("with details that are not there: got %v, want an error that names them", err)
	}
	missing.Workflows = []ui.Workflow{{ID: "blue/drain/nowhere"}}
	if err := ui.Check(ctx, missing); err == nil || !strings.Contains(err.Error(), "blue/drain/nowhere") {
		t.Errorf("with a workflow that is not there: got %v, want an error that names it", err)
	}
}
