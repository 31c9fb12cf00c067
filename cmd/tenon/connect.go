package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/codec"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/worker"
)

// temporalFlags are the flags of all commands that speak to a cluster's workflows.
type temporalFlags struct {
	cluster string
	keys    codec.Options
}

func (f *temporalFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.cluster, "cluster", "", "name of the cluster, as its worker has it (TENON_CLUSTER)")
	f.keys.Flags(flags)
}

// connect connects to the cluster of the kubeconfig and to the Temporal server.
func (f *temporalFlags) connect(ctx context.Context) (kube.WithWatch, client.Client, error) {
	if f.cluster == "" {
		return nil, nil, errors.New("which cluster? Give --cluster or TENON_CLUSTER, the name that its worker has")
	}
	restConfig, err := config.GetConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
	}
	direct, err := kubeClient(restConfig)
	if err != nil {
		return nil, nil, err
	}
	connection, err := temporal.Dial(ctx, f.keys, zap.NewNop())
	if err != nil {
		return nil, nil, err
	}
	return direct, connection, nil
}

func kubeClient(config *rest.Config) (kube.WithWatch, error) {
	direct, err := kube.NewWithWatch(config, kube.Options{Scheme: worker.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return direct, nil
}

// clusterCommand is what a command has that needs the API server only: its connection and its output.
type clusterCommand struct {
	kube kube.Client
	now  func() time.Time
	out  io.Writer
	json bool
}

// inCluster connects to the cluster of the kubeconfig and then runs a command. output is the value of its flag --output.
func inCluster(output *string, run func(context.Context, clusterCommand, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := program.FromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		if err := jsonOnly(*output); err != nil {
			return err
		}
		restConfig, err := config.GetConfig()
		if err != nil {
			return fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
		}
		direct, err := kubeClient(restConfig)
		if err != nil {
			return err
		}
		return run(cmd.Context(), clusterCommand{kube: direct, now: time.Now, out: cmd.OutOrStdout(), json: *output == "json"}, args)
	}
}
