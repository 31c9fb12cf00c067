package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/codec"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/workflows"
)

// defaultRetention is for how long the story of a node that is gone can be read by default.
const defaultRetention = 30 * 24 * time.Hour

func newSetupCommand() *cobra.Command {
	var check bool
	var retention time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Prepare a Temporal namespace for Tenon",
		Long: `Creates what workers need of a Temporal server, where it is missing: the namespace, and in it the search attributes of
Tenon's workflows. If closed workflows are kept for less than --retention, they are kept for that long from now on.

Nothing is removed and no retention is shortened, so setup may be repeated: it says of every part whether it was there. With
--check it only looks, and the exit code is 1 if something is missing. Workers create the rest themselves: the Schedule of the
sweep, and the Worker Deployment.

The server and the namespace are those of TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, or of a profile of Temporal's configuration
file. On Temporal Cloud, create the namespace in its console and let setup check it.`,
		Example: `  TEMPORAL_ADDRESS=localhost:7233 TEMPORAL_NAMESPACE=tenon tenon setup
  tenon setup --retention 2160h
  tenon setup --check -o json | jq -r '.[] | select(.state == "missing") | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := jsonOnly(output); err != nil {
				return err
			}
			if retention < 24*time.Hour {
				return fmt.Errorf("--retention %s: Temporal keeps closed workflows for a day at least", retention)
			}
			server, err := temporal.Connect(prometheus.NewRegistry(), codec.Options{}, zap.NewNop())
			if err != nil {
				return err
			}
			defer server.Client.Close()
			var parts []temporal.Part
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			wrong := 0
			want := temporal.Preparation{Attributes: workflows.Attributes(), Retention: retention, Check: check}
			prepared := server.Prepare(cmd.Context(), want, func(part temporal.Part) {
				parts = append(parts, part)
				if part.State == temporal.Missing || part.State == temporal.Different {
					wrong++
				}
				if output == "" {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", part.Kind, part.Name, part.State, part.Detail)
				}
			})
			if output == "json" {
				err = writeJSON(cmd.OutOrStdout(), parts)
			} else {
				err = table.Flush()
			}
			switch {
			case prepared != nil || err != nil:
				return errors.Join(prepared, err)
			case wrong > 0 && check:
				return fmt.Errorf("the namespace is not ready for Tenon: %d of %d parts; tenon setup creates what is missing", wrong, len(parts))
			case wrong > 0:
				return fmt.Errorf("the namespace is not ready for Tenon: %d of %d parts have to be changed by hand", wrong, len(parts))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&check, "check", false, "only look; the exit code is 1 if something is missing")
	f.DurationVar(&retention, "retention", defaultRetention, "for how long closed workflows are kept at least: the time in which the life of a node that is gone can be read")
	f.StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}
