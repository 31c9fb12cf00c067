package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/lab/demo"
)

func newDemoCommand() *cobra.Command {
	var options demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what Tenon does on a laboratory of its own, and check every step",
		Long: `Starts a laboratory (see "tenon-lab dev"), creates pending pods and waits for their nodes, drains a node by hand
while a PodDisruptionBudget blocks it, scales everything to zero and waits until every node and instance is gone.
It ends with a timeline, and exits 0 only if each step was observed.`,
		Example: "  tenon-lab demo\n  tenon-lab demo --pods 500 --dir /tmp/demo\n  tenon-lab demo --postgres",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			executable, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			options.TenonLab, options.Tenon = executable, filepath.Join(filepath.Dir(executable), "tenon")
			if _, err := os.Stat(options.Tenon); err != nil {
				return fmt.Errorf("the demonstration drains nodes with the program tenon, which has to be in the same directory as this one (make build): %w", err)
			}
			if options.Bin == "" {
				options.Bin = filepath.Dir(executable)
			}
			options.Out = cmd.OutOrStdout()
			return demo.Run(cmd.Context(), options)
		},
	}
	cmd.Flags().IntVar(&options.Pods, "pods", 200, "how many pods become pending")
	cmd.Flags().BoolVar(&options.Postgres, "postgres", false, "run Temporal's released server on PostgreSQL (make lab-postgres), instead of the development server")
	cmd.Flags().StringVar(&options.Dir, "dir", "", "directory of the laboratory, kept afterwards (default: a temporary one)")
	cmd.Flags().StringVar(&options.Bin, "bin", "", "directory that holds kubelab and temporal (default: this program's own)")
	return cmd
}
