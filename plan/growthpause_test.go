package plan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// TestGrowthPauses follows a pod that the kube-scheduler binds to none of its nodes.
func TestGrowthPauses(t *testing.T) {
	t.Parallel()
	var growth plan.Growth
	at := now
	for _, step := range []struct {
		reason string
		after  time.Duration
		nodes  int
		basis  string
		paused time.Duration
	}{
		{reason: "one node may come too early", nodes: 1, basis: "a"},
		{reason: "two are enough", after: time.Minute, nodes: 2, basis: "a", paused: 5 * time.Minute},
		{reason: "a pause is not made longer by asking", after: 2 * time.Minute, nodes: 2, basis: "a", paused: 3 * time.Minute},
		{reason: "after it there may be one more", after: 3 * time.Minute, nodes: 2, basis: "a"},
		{reason: "that did not help either", after: time.Minute, nodes: 3, basis: "a", paused: 10 * time.Minute},
		{reason: "other pools may help", after: time.Minute, nodes: 3, basis: "b"},
		{reason: "they did not, and the count begins with them", after: time.Minute, nodes: 4, basis: "b", paused: 5 * time.Minute},
		{reason: "a process that has seen less forgets nothing", nodes: 0, basis: "b", paused: 5 * time.Minute},
		{reason: "it doubles", after: 5 * time.Minute, nodes: 5, basis: "b", paused: 10 * time.Minute},
		{reason: "it doubles", after: 10 * time.Minute, nodes: 6, basis: "b", paused: 20 * time.Minute},
		{reason: "it doubles", after: 20 * time.Minute, nodes: 7, basis: "b", paused: 40 * time.Minute},
		{reason: "up to an hour", after: 40 * time.Minute, nodes: 8, basis: "b", paused: time.Hour},
		{reason: "up to an hour", after: time.Hour, nodes: 9, basis: "b", paused: time.Hour},
	} {
		at = at.Add(step.after)
		growth = growth.Next(step.nodes, step.basis, at)
		if growth.Paused(at) != (step.paused > 0) || step.paused > 0 && growth.Until.Sub(at) != step.paused {
			t.Errorf("%s: paused %t until %s, want a pause of %s from %s", step.reason, growth.Paused(at), growth.Until, step.paused, at)
		}
	}
}

func TestNothingIsBoughtWhileGrowthPauses(t *testing.T) {
	t.Parallel()
	paused := plan.Growth{Nodes: 2, Until: now.Add(time.Minute)}
	for _, test := range []struct {
		reason         string
		growth         plan.Growth
		nodes          []*plan.Node
		claims, placed int
		why            string
	}{
		{reason: "a pod that nodes came up for in vain waits", growth: paused, claims: 1, why: "paused until 2026-03-01T12:01:00Z: 2 nodes came up"},
		{reason: "it may have what is there", growth: paused, nodes: []*plan.Node{existing("n", "m6i.4xlarge")}, placed: 2},
		{reason: "a pause ends", growth: plan.Growth{Nodes: 2, Until: now}, claims: 1},
		{reason: "a single node is no reason to wait", growth: plan.Growth{Nodes: 1}, claims: 1},
	} {
		w := world{pods: []*corev1.Pod{newPod("stubborn", "1", "1Gi"), newPod("other", "500m", "1Gi")}, nodes: test.nodes,
			pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}}
		in := w.input()
		in.Growth = map[types.UID]plan.Growth{"uid-stubborn": test.growth}
		p := plan.Pack(in)
		if len(p.Claims) != test.claims || len(p.Placements) != test.placed {
			t.Errorf("%s: %d claims and %d placements, want %d and %d", test.reason, len(p.Claims), len(p.Placements), test.claims, test.placed)
		}
		switch {
		case test.why == "" && len(p.Unplaced) > 0:
			t.Errorf("%s: %v is left", test.reason, p.Unplaced)
		case test.why != "" && (len(p.Unplaced) != 1 || p.Unplaced[0].Pod.Name != "stubborn" || !strings.Contains(p.Unplaced[0].Reasons[0].Message, test.why)):
			t.Errorf("%s: %v is left, want the stubborn pod because of %q", test.reason, p.Unplaced, test.why)
		}
	}
}
