package starter

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// compared is what a sweep compares: cloud, cluster and workflows.
type compared struct {
	instances func(context.Context, cloud.Query) ([]cloud.Instance, error)
	mirror    Mirror
	temporal  client.Client
	cluster   workflows.Cluster
}

// fingerprint returns a hash of what a sweep compares: instances, NodeClaims and Nodes, reduced to what a sweep
// examines, and the number of running workflows of nodes.
func (c *compared) fingerprint(ctx context.Context) (uint64, error) {
	instances, err := c.instances(ctx, cloud.Query{})
	if err != nil {
		return 0, fmt.Errorf("list instances: %w", err)
	}
	running, err := c.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TenonCluster = '%s' AND WorkflowType IN ('%s') AND ExecutionStatus = 'Running'", c.cluster,
			strings.Join([]string{workflows.NodeClaimType, workflows.DrainType, workflows.LaunchType, workflows.ReplacementType, workflows.ApprovalType}, "', '"))})
	if err != nil {
		return 0, fmt.Errorf("count workflows: %w", err)
	}
	hash := fnv.New64a()
	add := func(values ...any) { _, _ = fmt.Fprintln(io.Writer(hash), values...) }
	add(running.GetCount())
	for i := range instances {
		// A sweep tags only some of the instances with names; the next one continues.
		add(instances[i].ID, instances[i].State, len(instances[i].Tags))
	}
	for _, claim := range c.mirror.Claims() {
		add(claim.UID, claim.Status.ProviderID, claim.DeletionTimestamp)
	}
	for _, node := range c.mirror.Nodes() {
		add(node.UID, node.DeletionTimestamp, len(node.Spec.Taints), len(node.Annotations), nodeReady(node))
	}
	return hash.Sum64(), nil
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
