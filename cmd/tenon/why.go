package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/workflows"
)

// whyFlags are the flags that all `tenon why` commands share.
type whyFlags struct {
	temporalFlags
	output string
}

func newWhyCommand() *cobra.Command {
	var flags whyFlags
	cmd := &cobra.Command{
		Use:     "why",
		Short:   "Say why something in the cluster is as it is",
		Example: "  tenon why pod shop/web-0\n  tenon why node ip-10-0-1-2.ec2.internal",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags.temporalFlags.add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	cmd.AddCommand(newWhyPodCommand(&flags), newWhyNodeCommand(&flags))
	return cmd
}

// inquiry is the connections and the output of a `tenon why` command.
type inquiry struct {
	cluster  workflows.Cluster
	kube     kube.Client
	temporal client.Client
	out      io.Writer
	json     bool
}

// withInquiry connects to Kubernetes and Temporal and then runs a command.
func withInquiry(flags *whyFlags, run func(context.Context, *inquiry, string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := program.FromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		if err := jsonOnly(flags.output); err != nil {
			return err
		}
		direct, connection, err := flags.connect(cmd.Context())
		if err != nil {
			return err
		}
		defer connection.Close()
		i := &inquiry{cluster: workflows.Cluster(flags.cluster), kube: direct, temporal: connection, out: cmd.OutOrStdout(), json: flags.output == "json"}
		return run(cmd.Context(), i, args[0])
	}
}

// tell writes a story in the output format.
func (i *inquiry) tell(story interface{ text() string }) error {
	if i.json {
		return writeJSON(i.out, story)
	}
	_, err := io.WriteString(i.out, story.text())
	return err
}

// price returns the hourly price of a claim's instance at its launch, as recorded in the claim's workflow; zero if that
// is no longer known.
func (i *inquiry) price(ctx context.Context, claim string) float64 {
	history := i.temporal.GetWorkflowHistory(ctx, i.cluster.NodeClaimID(claim), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !history.HasNext() {
		return 0
	}
	first, err := history.Next()
	if err != nil {
		return 0
	}
	var in workflows.NodeClaimInput
	if err := converter.GetDefaultDataConverter().FromPayloads(first.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in); err != nil {
		return 0
	}
	return in.Instance.Price
}
