package live

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// stillMirror never changes.
type stillMirror struct {
	snapshot plan.Snapshot
	stale    error
}

func (m *stillMirror) Snapshot() *plan.Snapshot  { return &m.snapshot }
func (m *stillMirror) Fresh(time.Duration) error { return m.stale }
func (m *stillMirror) NodeClasses() []cloud.NodeClass {
	return []cloud.NodeClass{&awsv1.EC2NodeClass{}}
}

// TestPageSourceWorksOnlyWhileWatched shows that nobody plans for the page unless somebody watches and a pod waits, and that
// the page learns what its source has read.
func TestPageSourceWorksOnlyWhileWatched(t *testing.T) {
	t.Parallel()
	pod := &plan.Pod{UID: "waits", Unschedulable: true}
	node := &plan.Node{Name: "a", InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: karpv1.CapacityTypeSpot}
	mirror := &stillMirror{snapshot: plan.Snapshot{Pending: []*plan.Pod{pod}, Nodes: []*plan.Node{node}}}
	plans := 0
	source := New(Options{Mirror: mirror,
		Why: func(context.Context, *plan.Snapshot) (map[types.UID]string, error) {
			plans++
			return map[types.UID]string{"waits": "too large"}, nil
		},
		Types: func(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error) {
			return []*cloud.InstanceType{{Name: "m5.large", Offerings: []cloud.Offering{{Zone: "us-east-1a", CapacityType: karpv1.CapacityTypeSpot, Price: 0.25}}}}, nil
		}})
	source.readReasons(t.Context())
	source.Look(t.Context(), false)
	source.readReasons(t.Context())
	if plans != 0 {
		t.Errorf("%d plans for a page that nobody watches", plans)
	}
	source.Look(t.Context(), true)
	source.readReasons(t.Context())
	source.readPrices(t.Context())
	in := source.Look(t.Context(), true)
	if plans != 1 || in.Reasons["waits"] != "too large" || in.Prices(node).PerHour != 0.25 || in.Stale != "" {
		t.Errorf("after %d plans the page knows %v, the price %v and the staleness %q", plans, in.Reasons, in.Prices(node), in.Stale)
	}
	mirror.snapshot.Pending = nil
	source.readReasons(t.Context())
	mirror.stale = errors.New("the API server is silent")
	if in := source.Look(t.Context(), true); plans != 1 || in.Stale != "the API server is silent" {
		t.Errorf("%d plans without pods that wait; the page says %q of an old mirror", plans, in.Stale)
	}
}
