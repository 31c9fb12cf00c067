package status

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// largeCluster is a mirror and a cloud of many identical nodes whose conditions are up to date.
type largeCluster struct {
	claims    []*karpv1.NodeClaim
	instances []cloud.Instance
	snapshot  *plan.Snapshot
	class     *awsv1.EC2NodeClass
}

func newLargeCluster(tb testing.TB, nodes int) *largeCluster {
	start := time.Now().Add(-2 * time.Hour)
	pool := testPool("default")
	l := &largeCluster{class: &awsv1.EC2NodeClass{}, snapshot: &plan.Snapshot{Time: time.Now(), NodePools: []*karpv1.NodePool{pool}}}
	l.class.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: metav1.ConditionTrue}}
	reduce := new(plan.Interner)
	for i := range nodes {
		made := plan.Claim{NodePool: "default"}
		claim, err := made.NodeClaim(pool, fmt.Sprintf("default-%d", i))
		if err != nil {
			tb.Fatal(err)
		}
		claim.CreationTimestamp = metav1.NewTime(start)
		claim.Status.ProviderID = fmt.Sprintf("aws:///a/i-%d", i)
		for _, condition := range claim.ReadyParts() {
			claim.SetCondition(metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)})
		}
		l.claims = append(l.claims, claim)
		l.instances = append(l.instances, cloud.Instance{ProviderID: claim.Status.ProviderID})
		l.snapshot.Nodes = append(l.snapshot.Nodes, reduce.Claim(claim))
	}
	return l
}

func (l *largeCluster) WaitSynced(context.Context) error                     { return nil }
func (l *largeCluster) Fresh(time.Duration) error                            { return nil }
func (l *largeCluster) Subscribe(...cluster.EventKind) *cluster.Subscription { return nil }
func (l *largeCluster) Claims() []*karpv1.NodeClaim                          { return l.claims }
func (l *largeCluster) NodeClass(string) cloud.NodeClass                     { return l.class }
func (l *largeCluster) Snapshot() *plan.Snapshot                             { return l.snapshot }

func (l *largeCluster) InstanceTypes(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error) {
	return nil, nil
}

func (l *largeCluster) Instances(context.Context, cloud.Query) ([]cloud.Instance, error) {
	return l.instances, nil
}

func (l *largeCluster) Drift(_ context.Context, _ cloud.NodeClass, questions []cloud.DriftQuestion) ([]cloud.Drift, error) {
	return make([]cloud.Drift, len(questions)), nil
}

// BenchmarkClaimConditions looks at every node of a cluster in which nothing has changed.
func BenchmarkClaimConditions(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			l := newLargeCluster(b, nodes)
			keeper := NewNodeClaims(nodeclass.Kind(), nil, l, l, zap.NewNop())
			for b.Loop() {
				if _, err := keeper.pass(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
