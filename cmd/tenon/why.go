package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

func newWhyCommand() *cobra.Command {
	var cluster, output string
	cmd := &cobra.Command{
		Use:   "why",
		Short: "Say why something in the cluster is as it is",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	pod := &cobra.Command{
		Use:   "pod NAMESPACE/NAME",
		Short: "Say why a pod has no node, or how it came by the one it has",
		Long: `Says why a pod has no node: what the planner makes of it at this moment, for each NodePool, or which node it is promised
to, or what has to happen before a node is looked for. The worker is asked, since it has the whole cluster, prices and
capacity in view; asking changes nothing.

For a pod that has a node it says which one, and how that node came about.`,
		Example: "  tenon why pod shop/web-0\n  tenon why pod shop/web-0 -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := jsonOnly(output); err != nil {
				return err
			}
			namespace, name, ok := strings.Cut(args[0], "/")
			if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
				return fmt.Errorf("%q: name the pod as NAMESPACE/NAME, such as default/web-0", args[0])
			}
			direct, connection, err := connect(cmd.Context(), cluster)
			if err != nil {
				return err
			}
			defer connection.Close()
			i := inquiry{cluster: workflows.Cluster(cluster), kube: direct, temporal: connection, out: cmd.OutOrStdout(), json: output == "json"}
			return i.pod(cmd.Context(), namespace, name)
		},
	}
	cmd.PersistentFlags().StringVar(&cluster, "cluster", "", "name of the cluster, as its worker has it (TENON_CLUSTER)")
	cmd.PersistentFlags().StringVarP(&output, "output", "o", "", "output format: json")
	cmd.AddCommand(pod, newWhyNodeCommand(&cluster, &output))
	return cmd
}

// inquiry is what `tenon why` works with.
type inquiry struct {
	cluster  workflows.Cluster
	kube     kube.Client
	temporal client.Client
	out      io.Writer
	json     bool
}

// pod tells the story of a pod.
func (i *inquiry) pod(ctx context.Context, namespace, name string) error {
	var pod corev1.Pod
	err := i.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: name}, &pod)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no pod %s/%s in this Kubernetes cluster", namespace, name)
	case err != nil:
		return fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	}
	f := facts{pod: &pod}
	if pod.Spec.NodeName != "" {
		if err := i.origin(ctx, pod.Spec.NodeName, &f); err != nil {
			return err
		}
	} else if f.waits() {
		answer, err := i.ask(ctx, namespace, name)
		if err != nil {
			return err
		}
		f.answer = &answer
		if answer.Node != "" {
			if err := i.expected(ctx, answer.Node, &f); err != nil {
				return err
			}
		}
	}
	story := f.story()
	if i.json {
		encoder := json.NewEncoder(i.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(story)
	}
	_, err = io.WriteString(i.out, story.text())
	return err
}

// origin looks up how a node came about.
func (i *inquiry) origin(ctx context.Context, name string, f *facts) error {
	var node corev1.Node
	err := i.kube.Get(ctx, kube.ObjectKey{Name: name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read node %s: %w", name, err)
	}
	f.node = &node
	if f.claim, err = claimOf(ctx, i.kube, &node); err != nil || f.claim == nil {
		return err
	}
	f.price = i.price(ctx, f.claim.Name)
	return nil
}

// expected looks up the claim, or the node without one, that a pod is meant for. Either may be gone by now.
func (i *inquiry) expected(ctx context.Context, name string, f *facts) error {
	var claim karpv1.NodeClaim
	err := i.kube.Get(ctx, kube.ObjectKey{Name: name}, &claim)
	switch {
	case err == nil:
		f.claim = &claim
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read NodeClaim %s: %w", name, err)
	}
	return nil
}

// price is what an hour of a claim's instance cost when it was launched, as the workflow of the claim was told; zero where
// that is not known any more.
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

// ask has a worker plan for the pod. Provisioning is started where it does not run.
func (i *inquiry) ask(ctx context.Context, namespace, name string) (workflows.PodAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	start := i.temporal.NewWithStartWorkflowOperation(workflows.ProvisioningOptions(i.cluster).Client(), workflows.ProvisioningType, workflows.ProvisioningInput{Cluster: i.cluster})
	handle, err := i.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{UpdateName: workflows.UpdateWhyPod, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{workflows.PodQuestion{Namespace: namespace, Name: name}}},
	})
	var answer workflows.PodAnswer
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	var refused *sdk.ApplicationError
	var late *serviceerror.DeadlineExceeded
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil || errors.As(err, &late):
		return answer, fmt.Errorf("no worker of cluster %s answered within %s; is one running?", i.cluster, 2*answerTimeout)
	case errors.As(err, &refused):
		return answer, fmt.Errorf("ask why pod %s/%s waits: %s", namespace, name, refused.Message())
	}
	return answer, fmt.Errorf("ask why pod %s/%s waits: %w", namespace, name, err)
}
