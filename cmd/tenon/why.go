package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/workflows"
)

// whyFlags are the flags that all `tenon why` commands share.
type whyFlags struct{ cluster, output string }

func newWhyCommand() *cobra.Command {
	var flags whyFlags
	cmd := &cobra.Command{
		Use:     "why",
		Short:   "Say why something in the cluster is as it is",
		Example: "  tenon why pod shop/web-0\n  tenon why node ip-10-0-1-2.ec2.internal",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&flags.cluster, "cluster", "", "name of the cluster, as its worker has it (TENON_CLUSTER)")
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
		direct, connection, err := connect(cmd.Context(), flags.cluster)
		if err != nil {
			return err
		}
		defer connection.Close()
		i := &inquiry{cluster: workflows.Cluster(flags.cluster), kube: direct, temporal: connection, out: cmd.OutOrStdout(), json: flags.output == "json"}
		return run(cmd.Context(), i, args[0])
	}
}

// ask lets a worker answer a question through an Update of a workflow, which it starts if it is not running. Errors
// contain what.
func (i *inquiry) ask(ctx context.Context, what string, start client.WithStartWorkflowOperation, update string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	handle, err := i.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions:          client.UpdateWorkflowOptions{UpdateName: update, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{question}},
	})
	if err == nil {
		err = handle.Get(ctx, answer)
	}
	var refused *sdk.ApplicationError
	var late *serviceerror.DeadlineExceeded
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || errors.As(err, &late):
		return fmt.Errorf("no worker of cluster %s answered within %s; is one running?", i.cluster, 2*answerTimeout)
	case errors.As(err, &refused):
		return fmt.Errorf("ask why %s: %s", what, refused.Message())
	}
	return fmt.Errorf("ask why %s: %w", what, err)
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
