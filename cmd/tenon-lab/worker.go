package main

import (
	"os"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/worker"
)

// newWorkerCommand returns the worker of tenon, which here obeys failpoints.
func newWorkerCommand(build program.Build) *cobra.Command {
	cmd := program.NewWorkerCommand(build, installFailpoints)
	cmd.Short = "Run a worker that tests can kill at failpoints"
	cmd.Long = `Runs the worker of "tenon worker", with the same flags. In addition, the environment variable ` + failpoint.PointsVariable + ` names
points at which it kills itself, for tests of what a successor finds.`
	cmd.Example = "  tenon-lab worker --cluster my-lab"
	return cmd
}

// installFailpoints makes the worker kill itself where a test asks for it through the environment.
func installFailpoints(to *worker.Connections, log *zap.Logger) ([]func(*config.LoadOptions) error, error) {
	points, err := failpoint.FromEnvironment()
	if err != nil || points == nil {
		return nil, err
	}
	log.Warn("this worker is under test: it kills itself at failpoints, or waits for a shorter time", zap.String("points", os.Getenv(failpoint.PointsVariable)))
	to.Kubernetes.Wrap(points.Kubernetes)
	to.Interceptors = append(to.Interceptors, points.Interceptor())
	return []func(*config.LoadOptions) error{config.WithHTTPClient(points.AWS(awshttp.NewBuildableClient()))}, nil
}
