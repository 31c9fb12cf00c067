package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// ill is a node of a pool with one condition for some time; a healthy one has none. A node of the pool "-" has no
// claim.
type ill struct {
	pool      string
	condition corev1.NodeConditionType
	status    corev1.ConditionStatus
	since     time.Duration
	deleting  bool
}

func (i ill) machine(name string) plan.Machine {
	m := plan.Machine{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, Claim: &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	if i.pool == "-" {
		m.Claim = nil
	} else if i.pool != "" {
		m.Claim.Labels = map[string]string{karpv1.NodePoolLabelKey: i.pool}
	}
	if i.deleting {
		m.Claim.DeletionTimestamp = &metav1.Time{Time: now}
	}
	conditions := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-100 * time.Hour))}}
	if i.condition == corev1.NodeReady {
		conditions = nil
	}
	if i.condition != "" {
		conditions = append(conditions, corev1.NodeCondition{Type: i.condition, Status: i.status, LastTransitionTime: metav1.NewTime(now.Add(-i.since))})
	}
	m.Node.Status.Conditions = conditions
	return m
}

func TestFindRepairs(t *testing.T) {
	t.Parallel()
	policies := []cloud.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Tolerated: 30 * time.Minute},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Tolerated: 30 * time.Minute},
		{Condition: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, Tolerated: 10 * time.Minute},
	}
	well := ill{pool: "a"}
	dead := ill{pool: "a", condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour}
	several := func(n int, of ill, more ...ill) []ill {
		var all []ill
		for range n {
			all = append(all, of)
		}
		return append(more, all...)
	}
	for _, row := range []struct {
		why          string
		nodes        []ill
		due, blocked []string
		next         time.Duration
		says         string
	}{
		{why: "healthy nodes", nodes: several(3, well), next: 0, says: ""},
		{why: "one that has been gone for too long", nodes: several(4, well, dead), due: []string{"n0"}, next: 0, says: "Ready has been Unknown since"},
		{why: "one that is not ready, to the second",
			nodes: several(4, well, ill{pool: "a", condition: corev1.NodeReady, status: corev1.ConditionFalse, since: 30 * time.Minute}),
			due:   []string{"n0"}, next: 0, says: ""},
		{why: "one that may recover",
			nodes: several(4, well, ill{pool: "a", condition: corev1.NodeReady, status: corev1.ConditionFalse, since: 29 * time.Minute}),
			next:  time.Minute, says: ""},
		{why: "devices are given up sooner",
			nodes: several(4, well, ill{pool: "a", condition: "AcceleratedHardwareReady", status: corev1.ConditionFalse, since: 10 * time.Minute}),
			due:   []string{"n0"}, next: 0, says: ""},
		{why: "a status nobody asked about",
			nodes: several(4, well, ill{pool: "a", condition: "AcceleratedHardwareReady", status: corev1.ConditionUnknown, since: time.Hour}), next: 0, says: ""},
		{why: "a condition nobody asked about",
			nodes: several(4, well, ill{pool: "a", condition: corev1.NodeMemoryPressure, status: corev1.ConditionTrue, since: time.Hour}), next: 0, says: ""},
		{why: "the only node of its pool: a fifth of one is one", nodes: []ill{dead}, due: []string{"n0"}, next: 0, says: ""},
		{why: "two of five are more than one", nodes: several(3, well, dead, dead), blocked: []string{"n0", "n1"}, next: 0,
			says: "2 of 5 nodes of its NodePool are unhealthy"},
		{why: "two of six are not more than two", nodes: several(4, well, dead, dead), due: []string{"n0", "n1"}, next: 0, says: ""},
		{why: "one that is still tolerated counts as unhealthy",
			nodes:   several(3, well, dead, ill{pool: "a", condition: corev1.NodeReady, status: corev1.ConditionFalse}),
			blocked: []string{"n0"}, next: 30 * time.Minute, says: ""},
		{why: "and so does one that is being ended",
			nodes:   several(3, well, dead, ill{pool: "a", condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour, deleting: true}),
			blocked: []string{"n0"}, next: 0, says: ""},
		{why: "one that is being ended is not ended again",
			nodes: several(9, well, ill{pool: "a", condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour, deleting: true}),
			next:  0, says: ""},
		{why: "another pool's illness is its own",
			nodes: []ill{dead, {pool: "b"}, {pool: "b", condition: corev1.NodeReady, status: corev1.ConditionFalse}, {pool: "b", condition: corev1.NodeReady, status: corev1.ConditionFalse}},
			due:   []string{"n0"}, next: 30 * time.Minute, says: ""},
		{why: "a node of no pool is one of the cluster's",
			nodes:   several(3, dead, ill{condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour}, well, well),
			blocked: []string{"n0", "n3", "n4", "n5"}, next: 0, says: "are unhealthy"},
		{why: "of a sick cluster", nodes: []ill{{condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour}, {condition: corev1.NodeReady, status: corev1.ConditionFalse}}, blocked: []string{"n0"}, next: 30 * time.Minute,
			says: "2 of 2 nodes of the cluster are unhealthy"},
		{why: "which other people's nodes are a part of", nodes: []ill{{condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour}, {pool: "-", condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour}}, blocked: []string{"n0"}, next: 0,
			says: "2 of 2 nodes of the cluster are unhealthy"},
		{why: "and is repaired in a healthy one",
			nodes: several(9, well, ill{condition: corev1.NodeReady, status: corev1.ConditionUnknown, since: time.Hour}), due: []string{"n0"}, next: 0, says: ""},
	} {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			var machines []plan.Machine
			for i, node := range row.nodes {
				machines = append(machines, node.machine(fmt.Sprintf("n%d", i)))
			}
			found := plan.FindRepairs(machines, policies, now)
			if diff := cmp.Diff([2][]string{row.due, row.blocked}, [2][]string{repaired(found.Due), repaired(found.Blocked)}); diff != "" {
				t.Errorf("due and blocked (-want +got):\n%s", diff)
			}
			var next time.Duration
			if !found.NextLook.IsZero() {
				next = found.NextLook.Sub(now)
			}
			if next != row.next {
				t.Errorf("the next look is in %s, want %s", next, row.next)
			}
			for _, repair := range append(found.Due, found.Blocked...) {
				if row.says != "" && !strings.Contains(repair.Message, row.says) {
					t.Errorf("message %q does not say %q", repair.Message, row.says)
				}
			}
		})
	}
}

func repaired(repairs []plan.Repair) []string {
	var names []string
	for _, repair := range repairs {
		names = append(names, repair.Node.Name)
	}
	return names
}
