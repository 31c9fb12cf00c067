package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newMovedCommand is in the place of a command of tenon-lab, which people may look for here. It is not in the help.
func newMovedCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("%s is a command of the laboratory, which is not in this program: run `tenon-lab %s` (make build builds it)", name, name)
		},
	}
}
