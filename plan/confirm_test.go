package plan_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// At the last check every pod needs a place, either in the best order or in the one in which the kube-scheduler is
// expected to place them. A node of 40 cores is being removed; a pod of 12 cores is large on it, one of 9 is small.
func TestConfirm(t *testing.T) {
	t.Parallel()
	type room struct {
		name        string
		cores, free int64
		launched    bool
	}
	tests := map[string]struct {
		reason string
		rooms  []room
		pods   []string // on the node that is removed, in cores
		change func(going *plan.Node)
		want   plan.Cause
	}{
		"fits":    {reason: "there is room for all", rooms: []room{{name: "a", cores: 30, free: 30}}, pods: []string{"12", "9", "9"}},
		"no room": {reason: "one pod more than there is room for", rooms: []room{{name: "a", cores: 29, free: 29}}, pods: []string{"12", "9", "9"}, want: plan.CauseRoom},
		"protected": {reason: "somebody protects the node", rooms: []room{{name: "a", cores: 30, free: 30}}, pods: []string{"12"}, want: plan.CauseNode,
			change: func(going *plan.Node) {
				going.DoNotDisrupt = true
			}},
		"emptiest": {reason: "by name the large pod takes the room of both small ones; the kube-scheduler prefers the empty node for it",
			rooms: []room{{name: "a", cores: 100, free: 19}, {name: "b", cores: 12, free: 12}}, pods: []string{"12", "9", "9"}},
		"launched": {reason: "what was launched for them takes the large pod, and a small one finds no room",
			rooms: []room{{name: "a", cores: 20, free: 20, launched: true}, {name: "b", cores: 100, free: 12}}, pods: []string{"12", "9", "9"}, want: plan.CauseRoom},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand())}}})
			add := func(name string, cores int64, pods ...*corev1.Pod) *plan.Node {
				n := &plan.Node{Name: name, Claim: name, Pool: "default", Labels: map[string]string{hostname: name, karpv1.NodePoolLabelKey: "default"},
					Allocatable: plan.Resources{CPU: 1000 * cores, Memory: 1 << 40, Pods: 100}, Launched: true, Registered: true, Initialized: true, Ready: true, Created: now}
				tn.nodes = append(tn.nodes, n)
				for _, pod := range pods {
					tn.settle(pod, n)
				}
				return n
			}
			for _, r := range test.rooms {
				n := add(r.name, r.cores)
				if used := r.cores - r.free; used > 0 {
					tn.settle(newPod("on-"+r.name, resource.NewQuantity(used, resource.DecimalSI).String(), "1Gi"), n)
				}
				if r.launched {
					n.Replacement = "r"
				}
			}
			var pods []*corev1.Pod
			for i, cores := range test.pods {
				pods = append(pods, newPod(fmt.Sprintf("pod-%d", i), cores, "1Gi"))
			}
			going := add("going", 40, pods...)
			going.Deleting, going.Disrupted, going.Replacement = true, true, "r"
			if test.change != nil {
				test.change(going)
			}
			var causes []plan.Cause
			for _, v := range plan.Confirm(tn.input(), plan.Command{Reason: karpv1.DisruptionReasonUnderutilized, Nodes: []string{"going"}}) {
				causes = append(causes, v.Cause)
			}
			if want := slices.DeleteFunc([]plan.Cause{test.want}, func(c plan.Cause) bool { return c == "" }); !slices.Equal(causes, want) {
				t.Errorf("%s: kept for %v, want %v", test.reason, causes, want)
			}
		})
	}
}
