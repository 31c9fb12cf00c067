package workflows

import (
	"compress/gzip"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// TestReplay runs today's workflows over histories that were recorded with a real server. Code that no longer fits them
// would stop every running workflow of its kind when a new version is rolled out.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no histories to replay")
	}
	types := unrecorded{}
	Register(types)
	for _, file := range files {
		history := readHistory(t, file)
		delete(types, history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName())
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			Register(replayer)
			quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
			if err := replayer.ReplayWorkflowHistory(quiet, history); err != nil {
				t.Error(err)
			}
		})
	}
	for name := range types {
		t.Errorf("no history of a %s was recorded", name)
	}
}

// unrecorded collects the names of all workflow types as they register.
type unrecorded map[string]bool

func (r unrecorded) RegisterWorkflow(any) {}

func (r unrecorded) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	r[options.Name] = true
}

func (r unrecorded) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {}

func readHistory(t *testing.T, file string) *historypb.History {
	t.Helper()
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	var history historypb.History
	if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(data, &history); err != nil {
		t.Fatal(err)
	}
	return &history
}
