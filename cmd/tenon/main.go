// Command tenon is the one binary of Tenon: the worker that runs in a cluster, the laboratory on one machine, and the
// tool with which people plan without a cluster, ask why a pod waits or a node stays, and watch and steer drains. This
// package only wires and words: every sub-command lives in files named after it and calls into the packages that do the
// work.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	// Budgets name time zones, and the image has none of its own.
	_ "time/tzdata"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "tenon: %v\n", err)
		os.Exit(1)
	}
}

// newRootCommand assembles the command tree.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tenon",
		Short: "Nodes for Kubernetes pods, each one a durable workflow",
		Long: `Tenon gives a Kubernetes cluster the nodes its pods need and takes them away when they are not needed.
It reads Karpenter's NodePool, NodeClaim and EC2NodeClass resources; every node claim, drain and
replacement runs as a durable Temporal workflow.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newDemoCommand())
	root.AddCommand(newDevCommand())
	root.AddCommand(newDrainCommand())
	root.AddCommand(newEC2SimCommand())
	root.AddCommand(newPlanCommand())
	root.AddCommand(newVersionCommand())
	root.AddCommand(newWhyCommand())
	root.AddCommand(newWorkerCommand())
	return root
}
