package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/workflows"
)

// drainFlags are the flags of the drain commands.
type drainFlags struct {
	temporalFlags
	output         string
	note, deadline string
	wait, keep     bool
}

func newDrainCommand() *cobra.Command {
	var flags drainFlags
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Empty a node, and steer drains that are under way",
		Long: `Cordons a node and evicts its pods through the Eviction API: ordinary pods first, then those of DaemonSets, then
critical ones, each as its disruption budgets allow. Pods that carry karpenter.sh/do-not-disrupt hold up the drain. The
drain is a durable workflow: it goes on when this command or the worker is stopped. A node that is being drained already,
or whose NodeClaim is being deleted, is not drained twice: the command attaches to what runs. Who gives an order is recorded
with it, as the API server knows them.

A node of Tenon's is terminated once it is drained, unless --keep is given. Any other node stays, cordoned. With a
deadline, pods that would outlive it are deleted without regard to budgets and annotations.`,
		Example: `  tenon drain ip-10-0-1-17.ec2.internal --wait
  tenon drain ip-10-0-1-17.ec2.internal --deadline 30m --note "kernel CVE"
  tenon drain status ip-10-0-1-17.ec2.internal
  tenon drain cancel ip-10-0-1-17.ec2.internal`,
		Args: oneNode,
		RunE: withDrains(&flags, func(ctx context.Context, d *drains, args []string) error {
			return d.start(ctx, args[0], flags)
		}),
	}
	cmd.Flags().BoolVar(&flags.wait, "wait", false, "show progress until the node is drained, and gone where it is to go; exit 0 only then")
	cmd.Flags().BoolVar(&flags.keep, "keep", false, "only drain: leave the NodeClaim and its instance alone")
	cmd.Flags().StringVar(&flags.deadline, "deadline", "", "when the drain ends whatever is left: a duration from now (30m) or an RFC 3339 time")
	flags.temporalFlags.add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	cmd.AddCommand(newDrainStatusCommand(&flags), flags.noted(newDrainDeadlineCommand(&flags)))
	for _, order := range []struct{ update, short string }{
		{workflows.UpdatePause, "Stop evictions; the node stays cordoned and the deadline keeps running"},
		{workflows.UpdateResume, "Resume evictions after a pause"},
		{workflows.UpdateCancel, "Cancel a drain: stop evictions and make the node schedulable again, even one that was drained with --keep"},
		{workflows.UpdateForce, "Delete what is left now, without regard to budgets and annotations"},
	} {
		cmd.AddCommand(flags.noted(&cobra.Command{
			Use: order.update + " NODE", Short: order.short, Example: "  tenon drain " + order.update + " ip-10-0-1-17.ec2.internal", Args: oneNode,
			RunE: withDrains(&flags, func(ctx context.Context, d *drains, args []string) error {
				return d.order(ctx, args[0], order.update, workflows.DrainOrder{Note: flags.note})
			}),
		}))
	}
	return flags.noted(cmd)
}

// noted adds the --note flag to a command.
func (f *drainFlags) noted(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.note, "note", "", "why, for those who look at the drain later")
	return cmd
}

func newDrainStatusCommand(flags *drainFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [NODE]", Short: "Show the drain of a node and what blocks it, or all drains that are under way",
		Example: "  tenon drain status\n  tenon drain status ip-10-0-1-17.ec2.internal -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: withDrains(flags, func(ctx context.Context, d *drains, args []string) error {
			switch {
			case len(args) == 0 && flags.wait:
				return errors.New("--wait: name the node")
			case len(args) == 0:
				return d.list(ctx)
			case flags.wait:
				return d.follow(ctx, args[0])
			}
			status, err := d.status(ctx, args[0])
			if err != nil {
				return err
			}
			return d.print(status)
		}),
	}
	cmd.Flags().BoolVar(&flags.wait, "wait", false, "show progress until the drain has ended; exit 0 only if the node is drained")
	return cmd
}

func newDrainDeadlineCommand(flags *drainFlags) *cobra.Command {
	return &cobra.Command{
		Use: "deadline NODE WHEN", Short: "Set a new deadline, or take it away (none)",
		Example: "  tenon drain deadline ip-10-0-1-17.ec2.internal 10m\n  tenon drain deadline ip-10-0-1-17.ec2.internal none",
		Args:    nodeAndDeadline,
		RunE: withDrains(flags, func(ctx context.Context, d *drains, args []string) error {
			order := workflows.DrainOrder{Note: flags.note}
			if args[1] != "none" {
				deadline, err := parseDeadline(args[1], time.Now())
				if err != nil {
					return err
				}
				order.Deadline = deadline
			}
			return d.order(ctx, args[0], workflows.UpdateDeadline, order)
		}),
	}
}

func oneNode(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: name one node, got %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
	}
	return nil
}

func nodeAndDeadline(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s: name one node, and a time, a duration or none; got %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
	}
	return nil
}

// drains is the connections and the output of the drain commands.
type drains struct {
	cluster  workflows.Cluster
	kube     kube.WithWatch
	temporal client.Client
	// out receives the result of the command, progress its messages meanwhile.
	out, progress io.Writer
	json          bool
}

// withDrains connects to Kubernetes and Temporal and then runs a command.
func withDrains(flags *drainFlags, run func(context.Context, *drains, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := program.FromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		if err := jsonOnly(flags.output); err != nil {
			return err
		}
		ctx := cmd.Context()
		direct, connection, err := flags.connect(ctx)
		if err != nil {
			return err
		}
		defer connection.Close()
		d := &drains{cluster: workflows.Cluster(flags.cluster), kube: direct, temporal: connection, out: cmd.OutOrStdout(), progress: cmd.OutOrStdout(), json: flags.output == "json"}
		if d.json {
			d.progress = cmd.ErrOrStderr()
		}
		return run(ctx, d, args)
	}
}

// parseDeadline parses a duration from now or a point in time. It fails for one that is not in the future.
func parseDeadline(value string, now time.Time) (time.Time, error) {
	if duration, err := time.ParseDuration(value); err == nil {
		if duration <= 0 {
			return time.Time{}, fmt.Errorf("deadline %q: must be in the future", value)
		}
		return now.Add(duration).Truncate(time.Second), nil
	}
	at, err := time.Parse(time.RFC3339, value)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("deadline %q: must be a duration such as 30m or a time such as %s", value, now.UTC().Format(time.RFC3339))
	case !at.After(now):
		return time.Time{}, fmt.Errorf("deadline %q: must be in the future", value)
	}
	return at, nil
}
