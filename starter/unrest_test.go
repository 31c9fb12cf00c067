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

// TestSweepsFollowChanges plays hours of looks and counts the sweeps that they lead to, beside those of the Schedule.
func TestSweepsFollowChanges(t *testing.T) {
	t.Parallel()
	const every = 2 * time.Minute
	began := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		// print is what there is after some time.
		print   func(after time.Duration) uint64
		unknown func(after time.Duration) bool
		want    int
	}{
		"nothing changes":        {print: func(time.Duration) uint64 { return 1 }, want: 3},
		"one thing changes":      {print: func(after time.Duration) uint64 { return 1 + uint64(after/(30*time.Minute)) }, want: 6},
		"something changes ever": {print: func(after time.Duration) uint64 { return 1 + uint64(after) }, want: 30},
		// Three sweeps at the start, five while nothing is known, and two after it.
		"EC2 does not answer for a while": {
			print:   func(time.Duration) uint64 { return 1 },
			unknown: func(after time.Duration) bool { return after >= 10*time.Minute && after < 20*time.Minute }, want: 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen unrest
			swept := 0
			for after := time.Duration(0); after < time.Hour; after += every {
				if seen.due(test.print(after), test.unknown == nil || !test.unknown(after), began.Add(after), every) {
					swept++
				}
			}
			if swept != test.want {
				t.Errorf("%d sweeps in an hour, want %d", swept, test.want)
			}
		})
	}
}

// compared is what a sweep compares, played: cloud, cluster and workflows.
type compared struct {
	Mirror
	client.Client
	instances []cloud.Instance
	claims    []*karpv1.NodeClaim
	nodes     []*corev1.Node
	running   int64
	away      error
}

func (c *compared) Claims() []*karpv1.NodeClaim { return c.claims }
func (c *compared) Nodes() []*corev1.Node       { return c.nodes }

func (c *compared) CountWorkflow(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{Count: c.running}, c.away
}

// TestFingerprint holds that what a sweep could put right is seen, and what nodes write of themselves all the time is not.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	deleted := metav1.NewTime(time.Unix(1_700_000_000, 0))
	node := func(c *compared) *corev1.Node { return c.nodes[0] }
	for name, test := range map[string]struct {
		change func(*compared)
		seen   bool
	}{
		"nothing": {func(*compared) {}, false},
		"a kubelet's heartbeat": {func(c *compared) {
			node(c).Status.Conditions[0].LastHeartbeatTime = deleted
			node(c).ResourceVersion = "2"
		}, false},
		"an instance more":           {func(c *compared) { c.instances = append(c.instances, cloud.Instance{ID: "i-2"}) }, true},
		"an instance that is ended":  {func(c *compared) { c.instances = nil }, true},
		"an instance that was named": {func(c *compared) { c.instances[0].Tags = map[string]string{"Name": "node"} }, true},
		"a claim more":               {func(c *compared) { c.claims = append(c.claims, &karpv1.NodeClaim{}) }, true},
		"a claim that goes":          {func(c *compared) { c.claims[0].DeletionTimestamp = &deleted }, true},
		"a claim that is launched":   {func(c *compared) { c.claims[0].Status.ProviderID = "aws:///us-east-1a/i-1" }, true},
		"a node that is gone":        {func(c *compared) { c.nodes = nil }, true},
		"a node that is marked":      {func(c *compared) { node(c).Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()} }, true},
		"a node that falls silent":   {func(c *compared) { node(c).Status.Conditions[0].Status = corev1.ConditionUnknown }, true},
		"a workflow that is ended":   {func(c *compared) { c.running-- }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &compared{running: 7, instances: []cloud.Instance{{ID: "i-1"}}, claims: []*karpv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{UID: "claim"}}},
				nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{UID: "node"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}}
			s := New(Config{Cluster: "c", Mirror: c, Temporal: c, Instances: func(context.Context, cloud.Query) ([]cloud.Instance, error) { return c.instances, nil }})
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
