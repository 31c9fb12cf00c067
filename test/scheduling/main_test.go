// Package scheduling_test checks the planner against the real kube-scheduler. On one laboratory, dozens of scenarios run at
// the same time, each in a namespace with its own NodePools, and each about one rule of scheduling: its pods are created all
// at once, Tenon plans and launches, and the kube-scheduler has the last word. A scenario passes if every pod is bound to
// the nodes of the first plan, no further launch follows, no node stays without pods, and the outcome is what the rule says.
//
// Scenarios are rows of tables, one table for each kind of rule. They interact only in the planner and the scheduler: each
// scenario's nodes carry its label, and all its pods select it.
package scheduling_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 200)) }

// scenarios returns the rows of all tables.
func scenarios() []scenario {
	return slices.Concat(labelScenarios(), labelRowScenarios(), poolScenarios(), resourceScenarios(), lifecycleScenarios(), volumeScenarios(), spreadScenarios(),
		affinityScenarios(), preferenceScenarios(), reasonScenarios(), reservedScenarios(), placementScenarios(), overlayScenarios(), deviceScenarios())
}

// TestScheduling is the one test of this package: its scenarios share a laboratory.
func TestScheduling(t *testing.T) {
	// The batch stays open for as long as pods keep coming, so that a burst of other pods never splits a scenario's pods. A
	// scenario's own pods are created together, or a moment apart on a busy machine.
	w := world.Start(t, world.Options{Worker: []string{"--batch-max-duration=90s", "--batch-idle-duration=3s", "--feature-gates=NodeOverlay=true,DynamicResources=true"}})
	w.DeletePool("default")
	w.Faults(ec2sim.Faults{Capacity: []ec2sim.CapacityFault{
		{PoolPattern: ec2sim.PoolPattern{InstanceType: refusedType}}, {PoolPattern: ec2sim.PoolPattern{InstanceType: refusedAlone}}}})
	v := watch(w)
	provision(t, w.WithWatch, v)
	publish(t, w.WithWatch, v)
	all := scenarios()
	for some := range slices.Chunk(all, atOnce) {
		t.Run("from "+some[0].name, func(t *testing.T) {
			for _, s := range some {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.play(t, w.For(t), v)
				})
			}
		})
	}
	// What a scenario launched after it was judged counts as well.
	for _, s := range all {
		if plans := v.plans(s.name); len(plans) > s.launches() {
			t.Errorf("%s: %d plans launched nodes in the end, want %d: %v", s.name, len(plans), s.launches(), plans)
		}
	}
}

// atOnce is how many scenarios begin together. With many more, some nodes of a scenario would boot a minute later than
// others on a busy machine, and Tenon would not keep their places that long.
const atOnce = 50

// settleWithin is how long a step of a scenario may take on a busy machine.
const settleWithin = 5 * time.Minute
