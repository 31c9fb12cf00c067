package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/worker"
)

// devStopTimeout limits how long `tenon-lab dev stop` waits for an orderly shutdown.
const devStopTimeout = 90 * time.Second

// devQueue is the SQS queue through which the simulated EC2 sends interruption notices to the worker.
const devQueue = "interruptions"

// devFlags are the flags of `tenon-lab dev`.
type devFlags struct {
	dir       string
	bin       string
	cluster   string
	provider  string
	bare      bool
	bootDelay time.Duration
	nodeLease time.Duration
	without   []string
}

func newDevCommand() *cobra.Command {
	var flags devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run Kubernetes, Temporal, a simulated EC2 and Tenon on this machine",
		Long: `Runs a laboratory as child processes of this command: a real Kubernetes control plane, a real Temporal
server with its web UI, a simulated EC2 that speaks HTTP, and Tenon's worker. It says "ready" when
everything works, and runs until Ctrl-C or "tenon-lab dev stop".

Everything is kept in one directory. Started again on it, the laboratory goes on where it was, however
it ended. DIR/env exports what kubectl, temporal, tenon and the AWS tools need to reach it; DIR/logs has
a log per process, DIR/pids its process id.`,
		Example: `  tenon-lab dev --dir /tmp/lab
  . /tmp/lab/env && kubectl get nodepools
  curl $AWS_ENDPOINT_URL/_sim/interrupt -d '{"instances":["i-..."]}'  # EC2 takes a spot instance back
  tenon-lab dev stop --dir /tmp/lab
  tenon-lab dev --dir /tmp/kwok --provider kwok  # no EC2: a cluster of KWOKNodeClasses`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDev(cmd.Context(), cmd.OutOrStdout(), flags)
		},
	}
	cmd.PersistentFlags().StringVar(&flags.dir, "dir", "", "directory of the laboratory (required)")
	_ = cmd.MarkPersistentFlagRequired("dir") // fails only for a flag that is not defined
	cmd.Flags().StringVar(&flags.bin, "bin", "", "directory that holds kubelab and temporal (default: this program's own)")
	cmd.Flags().StringVar(&flags.cluster, "cluster", "", fmt.Sprintf("name of the cluster (default: what DIR holds, %q at first)", lab.DefaultCluster))
	cmd.Flags().StringVar(&flags.provider, "provider", lab.ProviderAWS, "what runs instances: aws, on a simulated EC2, or kwok, which makes Nodes itself")
	cmd.Flags().BoolVar(&flags.bare, "bare", false, "apply no custom resource definitions and no default NodePool and node class")
	cmd.Flags().DurationVar(&flags.bootDelay, "boot-delay", 0, "how long a simulated instance takes to boot (default: the simulator's)")
	cmd.Flags().DurationVar(&flags.nodeLease, "node-lease", 0, "duration of the leases that simulated kubelets renew (default 40s)")
	cmd.Flags().StringSliceVar(&flags.without, "without", nil, "components to leave out, such as worker to run one under a debugger")
	cmd.AddCommand(newDevStopCommand(&flags))
	return cmd
}

func runDev(ctx context.Context, out io.Writer, flags devFlags) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if flags.bin == "" {
		flags.bin = filepath.Dir(executable)
	}
	components, err := componentsWithout(flags.without)
	if err != nil {
		return err
	}
	if flags.cluster != "" && !worker.ValidCluster(flags.cluster) {
		return fmt.Errorf("--cluster %q: must be 1 to 100 letters, digits, hyphens and underscores, and begin with a letter or digit", flags.cluster)
	}
	if err := program.CheckProvider(flags.provider); err != nil {
		return err
	}
	args := map[lab.Component][]string{}
	if flags.provider == lab.ProviderAWS {
		args = map[lab.Component][]string{lab.EC2Sim: {"--queue=" + devQueue}, lab.Worker: {"--interruption-queue=" + devQueue}}
	}
	fmt.Fprintf(out, "starting the laboratory in %s\n", flags.dir)
	l, err := lab.Start(ctx, lab.Options{
		Dir:        flags.dir,
		Bin:        flags.bin,
		TenonLab:   executable,
		Supervisor: "dev",
		Cluster:    flags.cluster,
		Components: components,
		Bare:       flags.bare,
		BootDelay:  flags.bootDelay,
		NodeLease:  flags.nodeLease,
		Provider:   flags.provider,
		Args:       args,
		Progress:   out,
	})
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; everything started is stopped")
		}
		return err
	}
	fmt.Fprintf(out, "ready\n")
	fmt.Fprintf(out, "  Temporal UI    %s\n", l.UIURL())
	fmt.Fprintf(out, "  Kubernetes     %s\n", l.APIServerURL())
	if flags.provider == lab.ProviderAWS {
		fmt.Fprintf(out, "  simulated EC2  %s\n", l.EC2SimURL())
	}
	fmt.Fprintf(out, "  environment    . %s\n", filepath.Join(l.Dir(), "env"))
	<-ctx.Done()
	fmt.Fprintln(out, "stopping")
	if err := l.Stop(); err != nil {
		return err
	}
	fmt.Fprintln(out, "stopped")
	return nil
}

func componentsWithout(names []string) ([]lab.Component, error) {
	components := lab.All()
	for _, name := range names {
		i := slices.Index(components, lab.Component(name))
		if i < 0 {
			return nil, fmt.Errorf("--without %s: the components are %v", name, lab.All())
		}
		components = slices.Delete(components, i, i+1)
	}
	return components, nil
}

func newDevStopCommand(flags *devFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "stop",
		Short:   "Stop the laboratory of a directory",
		Long:    `Stops every process of the laboratory and waits until the last is gone. Its data stays, "tenon-lab dev" resumes it.`,
		Example: "  tenon-lab dev stop --dir /tmp/lab",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), devStopTimeout)
			defer cancel()
			stopped, err := lab.StopRunning(ctx, flags.dir)
			if err != nil {
				return err
			}
			message := "stopped"
			if !stopped {
				message = "no laboratory runs there"
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), message)
			return err
		},
	}
}
