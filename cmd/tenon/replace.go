package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/workflows"
)

// replaceFlags are the flags of tenon replace.
type replaceFlags struct {
	temporalFlags
	output, note         string
	launch, dryRun, wait bool
}

func newReplaceCommand() *cobra.Command {
	var flags replaceFlags
	cmd := &cobra.Command{
		Use:   "replace NODE...",
		Short: "Replace nodes: launch first, wait until the new ones serve, then drain the old ones",
		Long: `Replaces nodes of Tenon's, given by the names of their Nodes or NodeClaims, each by a durable Replacement workflow: it
launches what the node's pods need and other nodes have no room for, waits until that serves, and only then lets the old
node be drained and terminated. Where the pods fit on nodes that are there, nothing is launched, unless --launch is given.
What does not serve in time is taken back, and the old node stays.

Your order is not limited by what limits Tenon's own decisions: pauses of disruption, maintenance windows, budgets, rates,
and annotations that protect the node itself. The command says which of them would have kept the node. Pods that carry
karpenter.sh/do-not-disrupt, and PodDisruptionBudgets, hold up the drain as in tenon drain. While provisioning is paused,
nothing is launched, and what needs a launch is taken back. Who gives the order is recorded with it.`,
		Example: `  tenon replace ip-10-0-1-17.ec2.internal --wait
  tenon replace ip-10-0-1-17.ec2.internal ip-10-0-1-18.ec2.internal --note "bad disk"
  tenon replace ip-10-0-1-17.ec2.internal --dry-run -o json`,
		Args: someNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := jsonOnly(flags.output); err != nil {
				return err
			}
			if flags.wait && flags.dryRun {
				return errors.New("--wait: a dry run has nothing to wait for")
			}
			direct, connection, err := flags.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer connection.Close()
			d := &drains{cluster: workflows.Cluster(flags.cluster), kube: direct, temporal: connection, out: cmd.OutOrStdout(), progress: cmd.OutOrStdout(), json: flags.output == "json"}
			if d.json {
				d.progress = cmd.ErrOrStderr()
			}
			c := &replaceCommand{kube: direct, runs: orderRuns{connection, d.cluster}, drain: d.status, out: d.out, progress: d.progress, json: d.json, every: lookEvery}
			order := workflows.ReplacementOrderInput{Cluster: d.cluster, Nodes: args, By: d.by(cmd.Context()), Note: flags.note, Launch: flags.launch, DryRun: flags.dryRun}
			return c.replace(cmd.Context(), order, flags.wait)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	cmd.Flags().StringVar(&flags.note, "note", "", "why, for those who look at the replacement later")
	cmd.Flags().BoolVar(&flags.launch, "launch", false, "launch new nodes for all pods that move, even if they fit on nodes that are there")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "only say what would be done")
	cmd.Flags().BoolVar(&flags.wait, "wait", false, "show progress until the nodes are gone; exit 0 only if all are")
	return cmd
}

func someNodes(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) > workflows.MostOrdered {
		return fmt.Errorf("%s: name from 1 to %d nodes; got %d (see %[1]s --help)", cmd.CommandPath(), workflows.MostOrdered, len(args))
	}
	return nil
}

// replacementRuns is what tenon replace asks of Temporal.
type replacementRuns interface {
	// Order carries out an order, and returns what it has begun.
	Order(ctx context.Context, in workflows.ReplacementOrderInput) (workflows.ReplacementOrderResult, error)
	// Await waits until a Replacement ends.
	Await(ctx context.Context, id string) (workflows.ReplacementResult, error)
}

// replaceCommand is the connections and the output of tenon replace.
type replaceCommand struct {
	kube kube.Client
	runs replacementRuns
	// drain asks how far the drain of a node is.
	drain func(ctx context.Context, node string) (workflows.DrainStatus, error)
	// out receives the result of the command, progress its messages meanwhile.
	out, progress io.Writer
	json          bool
	// every is the interval at which a waiting command looks.
	every time.Duration
}

// replacedNodes is what tenon replace -o json prints.
type replacedNodes struct {
	workflows.ReplacementOrderResult
	// Ended is how each replacement ended, by its id, if the command has waited for it.
	Ended map[string]workflows.ReplacementResult `json:"ended,omitempty"`
}

// replace gives an order, says what it has begun, and with wait waits until the nodes are gone. It fails if a node stays.
func (c *replaceCommand) replace(ctx context.Context, order workflows.ReplacementOrderInput, wait bool) error {
	slow := time.AfterFunc(2*time.Second, func() { c.say("asking a worker how the nodes are replaced ...") })
	begun, err := c.runs.Order(ctx, order)
	slow.Stop()
	if err != nil {
		return err
	}
	result := replacedNodes{ReplacementOrderResult: begun}
	if !c.json {
		if err := printOrder(c.out, order, begun); err != nil {
			return err
		}
	}
	failed := stays(begun.Kept)
	if wait {
		result.Ended, err = c.await(ctx, begun.Replacements)
		failed = errors.Join(failed, err)
	}
	if c.json {
		if err := writeJSON(c.out, result); err != nil {
			return err
		}
	}
	return failed
}

// stays returns an error that names the nodes which cannot be replaced.
func stays(kept []workflows.OrderObjection) error {
	errs := make([]error, 0, len(kept))
	for _, k := range kept {
		errs = append(errs, fmt.Errorf("node %s stays: %s", k.Node, k.Message))
	}
	return errors.Join(errs...)
}

// printOrder shows what an order has begun.
func printOrder(out io.Writer, order workflows.ReplacementOrderInput, begun workflows.ReplacementOrderResult) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(begun.Replacements) > 0 {
		_, _ = fmt.Fprintln(table, "NODE\tNODEPOOL\tPODS\tLAUNCHES FIRST\tWORKFLOW")
	}
	for _, r := range begun.Replacements {
		launches, workflow := "nothing: its pods fit on other nodes", "(dry run)"
		switch {
		case len(r.Launches) > 0:
			launches = strings.Join(r.Launches, ", ")
		case r.Moves == 0:
			launches = "nothing: no pods have to move"
		}
		if r.ID != "" {
			workflow = order.Cluster.ReplacementID(r.ID)
		}
		for i, node := range r.Nodes {
			pods := fmt.Sprint(r.Moves)
			if i > 0 {
				pods = ""
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", node.Node, node.NodePool, pods, launches, workflow)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, d := range begun.Despite {
		text := "the order goes on all the same"
		if d.Cause == "Pod" || d.Cause == "PDB" {
			text = "its drain waits for that"
		}
		if _, err := fmt.Fprintf(out, "note: node %s: %s; %s\n", d.Node, d.Message, text); err != nil {
			return err
		}
	}
	return nil
}

// say prints progress.
func (c *replaceCommand) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.progress, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// orderName distinguishes an order from all others.
func orderName() string { return string(uuid.NewUUID()) }
