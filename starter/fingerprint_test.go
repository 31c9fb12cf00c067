package starter

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// world is a fake of what a sweep compares: cloud, cluster and workflows.
type world struct {
	Mirror
	client.Client
	instances []cloud.Instance
	claims    []*karpv1.NodeClaim
	nodes     []*corev1.Node
	running   int64
	away      error
}

func (c *world) Claims() []*karpv1.NodeClaim { return c.claims }
func (c *world) Nodes() []*corev1.Node       { return c.nodes }

func (c *world) CountWorkflow(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{Count: c.running}, c.away
}

// TestFingerprint checks that the fingerprint shows what a sweep could put right, and not what nodes write about
// themselves all the time.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	deleted := metav1.NewTime(time.Unix(1_700_000_000, 0))
	node := func(c *world) *corev1.Node { return c.nodes[0] }
	for name, test := range map[string]struct {
		change func(*world)
		seen   bool
	}{
		"nothing": {func(*world) {}, false},
		"a kubelet's heartbeat": {func(c *world) {
			node(c).Status.Conditions[0].LastHeartbeatTime = deleted
			node(c).ResourceVersion = "2"
		}, false},
		"an instance more":           {func(c *world) { c.instances = append(c.instances, cloud.Instance{ID: "i-2"}) }, true},
		"an instance that is ended":  {func(c *world) { c.instances = nil }, true},
		"an instance that was named": {func(c *world) { c.instances[0].Tags = map[string]string{"Name": "node"} }, true},
		"a claim more":               {func(c *world) { c.claims = append(c.claims, &karpv1.NodeClaim{}) }, true},
		"a claim that goes":          {func(c *world) { c.claims[0].DeletionTimestamp = &deleted }, true},
		"a claim that is launched":   {func(c *world) { c.claims[0].Status.ProviderID = "aws:///us-east-1a/i-1" }, true},
		"a node that is gone":        {func(c *world) { c.nodes = nil }, true},
		"a node that is marked":      {func(c *world) { node(c).Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()} }, true},
		"a node that falls silent":   {func(c *world) { node(c).Status.Conditions[0].Status = corev1.ConditionUnknown }, true},
		"a workflow that is ended":   {func(c *world) { c.running-- }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &world{running: 7, instances: []cloud.Instance{{ID: "i-1"}}, claims: []*karpv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{UID: "claim"}}},
				nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{UID: "node"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}}
			s := compared{cluster: "c", mirror: c, temporal: c, instances: func(context.Context, cloud.Query) ([]cloud.Instance, error) { return c.instances, nil }}
			before, err := s.fingerprint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			test.change(c)
			after, err := s.fingerprint(t.Context())
			if err != nil || (after != before) != test.seen {
				t.Errorf("seen %t (%v), want %t", after != before, err, test.seen)
			}
			c.away = errors.New("unavailable")
			if _, err := s.fingerprint(t.Context()); !errors.Is(err, c.away) {
				t.Errorf("while Temporal is away: %v", err)
			}
		})
	}
}
