package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// listedPool is a NodePool as tenon get nodepools shows it.
type listedPool struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	Nodes int64  `json:"nodes"`
	// Paused, Window and Limited are the messages of the conditions Paused, MaintenanceWindow and DisruptionLimited; empty where
	// the NodePool has no such condition.
	Paused  string `json:"paused,omitempty"`
	Window  string `json:"window,omitempty"`
	Limited string `json:"limited,omitempty"`
	// Open says that maintenance windows are open for all that waits for one, or that nothing does.
	Open bool `json:"open"`
}

// newGetPoolsCommand is the one `tenon get` command that needs the API server only.
func newGetPoolsCommand(output *string) *cobra.Command {
	return &cobra.Command{
		Use: "nodepools", Short: "List NodePools, and what keeps their nodes: pauses, maintenance windows, budgets and rates that are used up",
		Example: "  tenon get nodepools\n  tenon get nodepools -o json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := jsonOnly(*output); err != nil {
				return err
			}
			restConfig, err := config.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
			}
			direct, err := kubeClient(restConfig)
			if err != nil {
				return err
			}
			return listPools(cmd.Context(), direct, cmd.OutOrStdout(), *output == "json")
		},
	}
}

// listPools lists NodePools by name, with what their conditions say.
func listPools(ctx context.Context, direct kube.Client, out io.Writer, asJSON bool) error {
	var pools karpv1.NodePoolList
	if err := direct.List(ctx, &pools); err != nil {
		return fmt.Errorf("list NodePools: %w", err)
	}
	listed := []listedPool{}
	for i := range pools.Items {
		pool := &pools.Items[i]
		l := listedPool{Name: pool.Name, Ready: pool.IsTrue(karpv1.ConditionTypeReady), Open: true}
		if pool.Status.Nodes != nil {
			l.Nodes = *pool.Status.Nodes
		}
		if paused := pool.Condition(karpv1.ConditionTypePaused); paused != nil {
			l.Paused = paused.Message
		}
		if window := pool.Condition(karpv1.ConditionTypeMaintenanceWindow); window != nil {
			l.Window, l.Open = window.Message, pool.IsTrue(karpv1.ConditionTypeMaintenanceWindow)
		}
		if limited := pool.Condition(karpv1.ConditionTypeDisruptionLimited); limited != nil {
			l.Limited = limited.Message
		}
		listed = append(listed, l)
	}
	if asJSON {
		return writeJSON(out, listed)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODEPOOL\tREADY\tNODES\tKEPT BY")
	for _, l := range listed {
		var kept []string
		for _, text := range []string{l.Paused, l.Limited, l.Window} {
			if text != "" {
				kept = append(kept, text)
			}
		}
		_, _ = fmt.Fprintf(table, "%s\t%t\t%d\t%s\n", l.Name, l.Ready, l.Nodes, orDash(strings.Join(kept, "; ")))
	}
	return table.Flush()
}
