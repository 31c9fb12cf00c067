// Command tenon-lab is the laboratory on one machine, with everything that production must not contain: the demonstration,
// the simulated EC2, and a worker that tests kill at failpoints. This package contains only wiring and output, as the
// package of the command tenon does.
package main

import (
	// The zones' database is in tenon too.
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cmd/internal/program"
)

// The linker sets version and commit, as it does those of tenon.
var version, commit string

func main() { program.Main(newRootCommand()) }

// newRootCommand assembles the command tree.
func newRootCommand() *cobra.Command {
	build := program.NewBuild(version, commit)
	root := &cobra.Command{
		Use:   "tenon-lab",
		Short: "A laboratory of Tenon on one machine",
		Long: `Runs Tenon on this machine, without a cloud: a real Kubernetes control plane, a real Temporal server, a simulated
EC2 and the worker. It is for trying Tenon and for its tests, and has no place in a cluster.`,
		Version:       build.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newDemoCommand())
	root.AddCommand(newDevCommand())
	root.AddCommand(newEC2SimCommand())
	root.AddCommand(newWorkerCommand(build))
	return root
}
