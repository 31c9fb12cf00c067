// Package scale_test measures what workers need for large clusters, and checks it against limits.
//
//   - On a laboratory with a real API server, nodes are launched, all of them drift, and are removed, with one worker and
//     with two: peak memory, seconds, requests by verb, bytes on the wire, and lists of all objects of a resource, which no
//     single event may cause (phases_test.go).
//   - A worker is fed a cluster that is too large for that: by a server that speaks the API server's watch, by one that
//     speaks Temporal's frontend and hands out the history of a serving node any number of times, and by the simulated EC2.
//     The test measures what mirror, workflows, sweep, evaluation and plan take (fed_test.go). Nothing is written there, and
//     status controllers and starter do not run.
//   - Drains that budgets block are observed while pods are created: what the drains cost, and whom they delay
//     (blocked_test.go).
//
// The tests run a short form. Environment variables ask for larger ones, as make bench-scale does; that also checks times
// against limits, which mean nothing on a machine with other load.
package scale_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/test/world"
)

const (
	// labPeakMiB is the most memory that a worker may have resident on the laboratory, fedPeakMiB the same for the fed
	// worker.
	labPeakMiB, fedPeakMiB = 350, 1024
	// fedLimit is the memory limit of the fed worker.
	fedLimit = "1Gi"
	// sweepSeconds and sweepMB limit the time of a sweep, and the data it reads from the API server.
	sweepSeconds, sweepMB = 30, 20
	// maxDelay limits by how much waiting drains may raise the 95th percentile of the pods' wait for their NodeClaims, in
	// seconds; delayShort is the limit in the short form.
	maxDelay, delayShort = 0.5, 2.0
	// maxLists is the number of nodes for each allowed list of all objects of a resource; listsFew lists are always allowed.
	maxLists, listsFew = 100, 3
)

func TestMain(m *testing.M) {
	if said := os.Getenv(fedVariable); said != "" {
		fmt.Fprintln(os.Stderr, beFed(said))
		os.Exit(1)
	}
	os.Exit(world.Main(m, 1))
}

// setting returns a number from the environment variable with the prefix TENON_SCALE_, or the default of the short form.
func setting(name string, short int) int {
	if n, err := strconv.Atoi(os.Getenv("TENON_SCALE_" + name)); err == nil {
		return n
	}
	return short
}

// TestNodesComeDriftAndGo runs the story with one worker and with two; the short form runs it with two only.
func TestNodesComeDriftAndGo(t *testing.T) {
	for replicas := 1; replicas <= 2; replicas++ {
		if only := setting("REPLICAS", 2); only != 0 && only != replicas {
			continue
		}
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			w := world.Start(t, world.Options{Reads: true, Large: true, BootDelay: time.Duration(setting("BOOT", 2)) * time.Second})
			s := &story{World: w, nodes: setting("NODES", 40), pods: setting("PODS", 400), step: setting("STEP", 2500), budget: fmt.Sprintf("%d%%", setting("BUDGET", 100))}
			s.replicas, s.meter = startReplicas(t, w, replicas)
			s.scaleOutDriftAndIn(time.Hour)
			keep(t, fmt.Sprintf("lab-%d-replicas", replicas), map[string]any{"nodes": s.nodes, "pods": s.pods, "replicas": replicas, "memoryLimit": memoryLimit, "podsAtOnce": s.step, "driftBudget": s.budget, "phases": s.phases})
			for _, p := range s.phases {
				for i, peak := range p.PeakMiB {
					if peak > labPeakMiB {
						t.Errorf("lab-peak-MiB: replica %d had %.0f MiB resident in %s, want at most %d", i, peak, p.Name, labPeakMiB)
					}
				}
				if resource, n := p.listsOfAll(); n > max(listsFew, s.nodes/maxLists) {
					t.Errorf("lab-lists-of-all: all %s were listed %d times in %s, want at most one list for %d nodes", resource, n, p.Name, maxLists)
				}
			}
		})
	}
}

// TestWorkerIsFed feeds a large cluster to a worker.
func TestWorkerIsFed(t *testing.T) {
	f := feed(t, setting("FED_NODES", 500), setting("FED_PODS", 5000), fedLimit)
	keep(t, "fed", f)
	progress("%d nodes, %d pods, limit %s: peak %.0f MiB (mirror %.0f, with workflows %.0f); sweep %.1f s, %.2f MiB from the API server, %.1f from EC2, %.1f from Temporal; evaluation %.1f s, plan %.1f s",
		f.Nodes, f.Pods, f.MemoryLimit, f.PeakMiB, f.PeakMirrorMiB, f.PeakWorkflowsMiB, f.SweepSeconds, f.SweepAPIServer, f.SweepEC2, f.SweepTemporal, f.EvaluateSeconds, f.PlanSeconds)
	if f.PeakMiB > fedPeakMiB {
		t.Errorf("fed-peak-MiB: %.0f, want at most %d", f.PeakMiB, fedPeakMiB)
	}
	if f.SweepSeconds > sweepSeconds {
		t.Errorf("fed-sweep-seconds: %.1f, want at most %d", f.SweepSeconds, sweepSeconds)
	}
	if mb := f.SweepAPIServer * (1 << 20) / 1e6; mb > sweepMB {
		t.Errorf("fed-sweep-MB: %.1f from the API server, want at most %d", mb, sweepMB)
	}
}

// TestBlockedDrainsKeepNobodyWaiting checks what drains that wait for budgets cost, and that pods get their NodeClaims as
// soon as without such drains.
func TestBlockedDrainsKeepNobodyWaiting(t *testing.T) {
	most := delayShort
	if os.Getenv("TENON_SCALE_STRICT") != "" {
		most = maxDelay
	}
	f := measureWaiting(t, setting("DRAINS", 40), setting("SAMPLES", 6))
	keep(t, "waiting", f)
	progress("%d drains wait: pods got their NodeClaims within %.2f s before and %.2f s meanwhile (95th percentile of %d); in %.0f s all drains together made %d events and %d requests; an hour costs each %d actions and %d requests",
		f.Drains, f.Before, f.While, f.Samples*batchPods, f.QuietSeconds, f.QuietEvents, f.QuietCalls, f.Actions, f.Calls)
	if f.While-f.Before > most {
		t.Errorf("waiting-delay-p95-seconds: %.2f s more than without drains, want at most %.1f", f.While-f.Before, most)
	}
	if f.Actions > actionsAnHour {
		t.Errorf("waiting-actions-an-hour: %d, want at most %d", f.Actions, actionsAnHour)
	}
	if f.Calls > callsAnHour {
		t.Errorf("waiting-calls-an-hour: %d, want at most %d", f.Calls, callsAnHour)
	}
	hours := float64(f.Drains) * f.QuietSeconds / 3600
	if float64(f.QuietCalls) > callsAnHour*hours+1 {
		t.Errorf("waiting-calls-an-hour: %d requests of drains that wait in %.2f hours of them, want at most %d an hour: %v", f.QuietCalls, hours, callsAnHour, f.QuietRequests)
	}
	if float64(f.QuietEvents) > 3*actionsAnHour*hours+1 {
		t.Errorf("waiting-actions-an-hour: the histories of drains that wait grew by %d events in %.2f hours of them", f.QuietEvents, hours)
	}
}

// keep adds figures to the file that TENON_SCALE_OUT names.
func keep(t *testing.T, name string, figures any) {
	t.Helper()
	path := os.Getenv("TENON_SCALE_OUT")
	if path == "" {
		return
	}
	all := map[string]any{}
	if data, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
	}
	all[name] = figures
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
