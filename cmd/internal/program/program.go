// Package program is what tenon and tenon-lab have in common: the command that runs a worker, flags that can be set in the
// environment, the name of a build, and how a program starts and ends.
//
// Both run the same worker. tenon-lab hands it a Change, with which tests kill it at chosen points; tenon hands it none, and
// so contains no test code.
//
// Reading order: program, environment, build, provider, worker.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs a command until it ends, or an interrupt or SIGTERM cancels its context. An error ends the process with the exit
// code 1.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
		os.Exit(1)
	}
}
