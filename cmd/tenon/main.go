// Command tenon is what runs in production: the worker in a cluster, and the tool that prepares a Temporal server, plans without
// a cluster, explains why a pod waits or a node is kept, watches a cluster, shows and steers drains, replaces and expires nodes, pauses and resumes the work,
// removes what a deleted cluster left, and decrypts for Temporal's own tools what it keeps. This package contains only wiring and
// output: every sub-command lives in files named after it and calls the packages that do the work.
package main

import (
	// Budgets name time zones, and the image contains no time zone database.
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cmd/internal/program"
)

func main() { program.Main(newRootCommand()) }

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
	root.AddCommand(newApprovalsCommand())
	root.AddCommand(newApproveCommand())
	root.AddCommand(newRejectCommand())
	root.AddCommand(newCleanupCommand())
	root.AddCommand(newCodecServerCommand())
	root.AddCommand(newConvertCommand())
	root.AddCommand(newDrainCommand())
	root.AddCommand(newExpireCommand())
	root.AddCommand(newGetCommand())
	root.AddCommand(newHistoryCommand())
	root.AddCommand(newMigrateCommand())
	root.AddCommand(newPauseCommand())
	root.AddCommand(newPlanCommand())
	root.AddCommand(newReplaceCommand())
	root.AddCommand(newResumeCommand())
	root.AddCommand(newRolloutCommand())
	root.AddCommand(newSetupCommand())
	root.AddCommand(newSupportBundleCommand())
	root.AddCommand(newTopCommand())
	root.AddCommand(newVersionCommand())
	root.AddCommand(newWhyCommand())
	root.AddCommand(program.NewWorkerCommand(program.NewBuild(version, commit), nil))
	for _, name := range []string{"demo", "dev", "ec2sim"} {
		root.AddCommand(newMovedCommand(name))
	}
	return root
}
