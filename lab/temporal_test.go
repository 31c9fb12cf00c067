package lab_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tenon-sh/tenon/lab"
)

// TestTemporalResumes starts a workflow on the lab's Temporal server, kills the server, and checks that the workflow and
// the search attributes are still there.
func TestTemporalResumes(t *testing.T) {
	t.Parallel()
	for name, postgres := range map[string]bool{"development server": false, "released server on PostgreSQL": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporalResumes(t, postgres)
		})
	}
}

func temporalResumes(t *testing.T, postgres bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "tenon-lab-") //nolint:usetesting // PostgreSQL's user cannot reach the test's own directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	opts := lab.Options{
		Dir:        dir,
		Bin:        filepath.Join("..", "bin"),
		Components: []lab.Component{lab.Temporal},
		Postgres:   postgres,
		Bare:       true,
		Progress:   testWriter{t},
	}
	l, err := lab.Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	started, err := dial(t, l).ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "lasting", TaskQueue: "nobody"}, "Lasting")
	if err != nil {
		t.Fatal(err)
	}

	if err := l.Crash(); err != nil {
		t.Fatal(err)
	}
	if l, err = lab.Start(ctx, opts); err != nil {
		t.Fatal(err)
	}

	found, err := dial(t, l).DescribeWorkflowExecution(ctx, "lasting", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := found.GetWorkflowExecutionInfo().GetExecution().GetRunId(); got != started.GetRunID() {
		t.Errorf("after a crash the workflow's run is %s, want %s", got, started.GetRunID())
	}
	conn, err := grpc.NewClient(l.TemporalAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	attributes, err := operatorservice.NewOperatorServiceClient(conn).ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: client.DefaultNamespace})
	if err != nil {
		t.Fatal(err)
	}
	var keywords []string
	for name, kind := range attributes.GetCustomAttributes() {
		if kind == enums.INDEXED_VALUE_TYPE_KEYWORD {
			keywords = append(keywords, name)
		}
	}
	want := []string{"TenonCluster", "NodePool", "NodeClaim", "Node", "Instance", "Zone", "Phase", "Reason"}
	sorted := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(want, keywords, sorted); diff != "" {
		t.Errorf("search attributes (-want +got):\n%s", diff)
	}
}

func dial(t *testing.T, l *lab.Lab) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: l.TemporalAddress()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
