package temporal

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tenon-sh/tenon/internal/codec"
)

// listener records the authorization of each request.
type listener struct {
	workflowservice.UnimplementedWorkflowServiceServer
	heard []string
}

func (l *listener) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (l *listener) DescribeNamespace(ctx context.Context, _ *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	l.heard = append(l.heard, strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ","))
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

// TestKeyIsReadFromAFileAgain replaces the key in its file between two requests.
func TestKeyIsReadFromAFileAgain(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, heard := grpc.NewServer(), &listener{}
	workflowservice.RegisterWorkflowServiceServer(server, heard)
	go func() { _ = server.Serve(port) }()
	t.Cleanup(server.Stop)

	file := filepath.Join(t.TempDir(), "api-key")
	t.Setenv("TEMPORAL_ADDRESS", port.Addr().String())
	t.Setenv("TEMPORAL_TLS", "false")
	t.Setenv("TEMPORAL_API_KEY", "from the environment")
	t.Setenv("TEMPORAL_CONFIG_FILE", t.TempDir()+"/none.toml")
	t.Setenv(KeyFileVariable, file)
	if _, err := Connect(prometheus.NewRegistry(), codec.Options{}, zap.NewNop()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("without the file: %v, want an error that names it", err)
	}
	write := func(key string) {
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	connection, err := Connect(prometheus.NewRegistry(), codec.Options{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Client.Close()
	for _, key := range []string{"first", "second"} {
		write(key + "\n")
		if err := connection.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := strings.Join(heard.heard, "; "), "Bearer first; Bearer second"; got != want {
		t.Errorf("the server heard %q, want %q", got, want)
	}
}
