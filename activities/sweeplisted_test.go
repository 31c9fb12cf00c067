package activities

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestSweepChecksTheListOfWorkflows has a list that shows workflows as running which the server does not have, as after a
// backup whose two databases are not of the same moment.
func TestSweepChecksTheListOfWorkflows(t *testing.T) {
	t.Parallel()
	lives, claims, instances := sweptLives(3, func(i int) bool { return i == 2 })
	lives[1].listedOnly, lives[2].listedOnly = true, true // one of them has a claim, the other an instance only
	server, provider := &livesServer{lives: lives, told: map[string]any{}}, &sweptCloud{instances: instances}
	a := New(Config{Cluster: "c", ClusterUID: "own", SweepMost: SweepMost, Temporal: server, Cloud: provider, Mirror: sweptMirror{}, Log: zap.NewNop(),
		Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claims...).Build()})
	got := sweepOnce(t, a)
	if want := []string{lives[1].id}; !slices.Equal(server.started, want) || !slices.Equal(got.Adopted, []string{"a01"}) {
		t.Errorf("started %v and reports %v as adopted, want %v", server.started, got.Adopted, want)
	}
	if want := []string{lives[2].instance}; !slices.Equal(provider.terminated, want) {
		t.Errorf("terminated %v, want %v", provider.terminated, want)
	}
	if len(server.told) > 0 || len(got.Ended) > 0 {
		t.Errorf("told %v and reports %v as ended: they do not run", server.told, got.Ended)
	}
	// The list goes on showing them.
	if again := sweepOnce(t, a); len(again.Ended) > 0 {
		t.Errorf("the next sweep reports %v as ended", again.Ended)
	}
}

// TestSweepChecksPartOfALongList has sweeps ask for every listed workflow in turn, for a part of them each time.
func TestSweepChecksPartOfALongList(t *testing.T) {
	t.Parallel()
	const all = 10 * checkShare * checkLeast
	now := time.Now()
	listed := map[string]listedWorkflow{}
	for i := range all {
		id := fmt.Sprintf("c/nodeclaim/a%04d", i)
		listed[id] = listedWorkflow{run: "run of " + id}
	}
	server := &livesServer{}
	for id := range listed {
		server.lives = append(server.lives, life{id: id, status: runs, listedOnly: id == "c/nodeclaim/a4999"})
	}
	s := sweep{sweeper: &sweeper{executions: executions{server}}, listed: listed, now: now}
	sweeps := 0
	for ; len(listed) == all && sweeps < 100; sweeps++ {
		s.now = now.Add(time.Duration(sweeps) * time.Minute)
		s.check(t.Context())
	}
	if diff := cmp.Diff(checkShare, sweeps); diff != "" {
		t.Errorf("sweeps until the last one was checked (-want +got):\n%s", diff)
	}
}
