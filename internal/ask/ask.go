// Package ask asks a worker why something in the cluster is as it is. Only a worker can answer: it has the whole cluster,
// prices and capacity in view. Asking changes nothing, but starts the workflow that passes the question on if it is not
// running.
package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/tenon-sh/tenon/workflows"
)

// Timeout limits how long a question waits for an answer.
const Timeout = 30 * time.Second

// Asker asks the workers of one cluster.
type Asker struct {
	Temporal client.Client
	Cluster  workflows.Cluster
}

// Pod returns what the planner makes of a pending pod at this moment.
func (a Asker) Pod(ctx context.Context, namespace, name string) (answer workflows.PodAnswer, err error) {
	start := a.Temporal.NewWithStartWorkflowOperation(workflows.ProvisioningOptions(a.Cluster).Client(), workflows.ProvisioningType, workflows.ProvisioningInput{Cluster: a.Cluster})
	err = a.ask(ctx, fmt.Sprintf("pod %s/%s waits", namespace, name), start, workflows.UpdateWhyPod, workflows.PodQuestion{Namespace: namespace, Name: name}, &answer)
	return answer, err
}

// Node returns what an evaluation makes of a node at this moment. name is a Node's or a NodeClaim's.
func (a Asker) Node(ctx context.Context, name string) (answer workflows.NodeAnswer, err error) {
	start := a.Temporal.NewWithStartWorkflowOperation(workflows.DisruptionOptions(a.Cluster).Client(), workflows.DisruptionType, workflows.DisruptionInput{Cluster: a.Cluster})
	err = a.ask(ctx, fmt.Sprintf("node %s stays", name), start, workflows.UpdateWhyNode, workflows.NodeQuestion{Name: name}, &answer)
	return answer, err
}

// ask lets a worker answer a question through an Update of a workflow. Errors contain what.
func (a Asker) ask(ctx context.Context, what string, start client.WithStartWorkflowOperation, update string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	handle, err := a.Temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
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
		return fmt.Errorf("no worker of cluster %s answered within %s; is one running?", a.Cluster, Timeout)
	case errors.As(err, &refused):
		return fmt.Errorf("ask why %s: %s", what, refused.Message())
	}
	return fmt.Errorf("ask why %s: %w", what, err)
}
