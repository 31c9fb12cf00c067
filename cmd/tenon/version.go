package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cmd/internal/program"
)

// The linker sets version and commit (-X main.version=... -X main.commit=...).
var version, commit string

func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  tenon version\n  tenon version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := jsonOnly(output); err != nil {
				return err
			}
			build := program.NewBuild(version, commit)
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), build)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "tenon %s (%s, %s)\n", build.Version, build.Go, build.Platform)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}
