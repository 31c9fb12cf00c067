package temporal

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tenon-sh/tenon/internal/codec"
	"github.com/tenon-sh/tenon/internal/logs"
)

func TestDialNamesTheAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEMPORAL_ADDRESS", address)
	t.Setenv("TEMPORAL_NAMESPACE", "fleet")
	t.Setenv("TEMPORAL_CONFIG_FILE", t.TempDir()+"/none.toml")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = Dial(ctx, codec.Options{}, zap.NewNop())
	if err == nil {
		t.Fatal("connected to a server that does not run")
	}
	for _, want := range []string{address, "fleet"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
}

// TestDialNamesTheKeys shows that mistakes about keys are found before anybody is called.
func TestDialNamesTheKeys(t *testing.T) {
	t.Parallel()
	if _, err := Dial(t.Context(), codec.Options{Directory: t.TempDir()}, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "--codec-key-id") {
		t.Errorf("without the name of a key the error is %v", err)
	}
	if _, err := Connect(prometheus.NewRegistry(), codec.Options{Directory: t.TempDir(), KeyID: "a"}, zap.NewNop()); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("without the key the error is %v", err)
	}
}

func TestLoggerNamesIDsAsTenonsLinesDo(t *testing.T) {
	t.Parallel()
	core, observed := observer.New(zapcore.InfoLevel)
	sdk.With(NewLogger(zap.New(core)), "WorkflowID", "blue/nodeclaim/a", "RunID", "r-1").Warn("Activity error.", "ActivityType", "Join", "Attempt", 2, "Error", "lost", "odd")
	want := map[string]any{logs.WorkflowID: "blue/nodeclaim/a", logs.RunID: "r-1", logs.Activity: "Join", logs.Attempt: int64(2), "Error": "lost"}
	got := observed.FilterMessage("Activity error.").All()[0].ContextMap()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %v, want %v", key, got[key], value)
		}
	}
}

func TestLoggerKeepsFieldsAndCaller(t *testing.T) {
	t.Parallel()
	core, observed := observer.New(zapcore.InfoLevel)
	log := NewLogger(zap.New(core, zap.AddCaller()))
	sdk.With(log, "node", "n-1").Info("drained", "evicted", 3)
	entries := observed.All()
	if len(entries) != 1 {
		t.Fatalf("%d lines, want 1", len(entries))
	}
	got := entries[0]
	fields := got.ContextMap()
	if got.Message != "drained" || fields["node"] != "n-1" || fields["evicted"] != int64(3) {
		t.Errorf("got %q %v", got.Message, fields)
	}
	if !strings.HasSuffix(got.Caller.File, "dial_test.go") {
		t.Errorf("caller is %s, want this test", got.Caller.File)
	}
}
