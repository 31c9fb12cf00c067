package outside_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// queueName is the queue into which EventBridge puts interruptions.
const queueName = lab.DefaultCluster // the one that deploy/iam lets the worker read

// temporalAway stops Temporal while a node serves. The worker reports that, is killed and starts without Temporal; a node
// whose spot instance is interrupted is closed at once; pods are created. When Temporal is back, everything is done within
// half a minute.
func temporalAway(w *world.World) {
	w.Apply(pods("away", 1))
	w.AwaitRunning("away", 1, 2*time.Minute)
	taken := w.Claims()[0]
	launched := len(w.Instances())
	halt(w)
	stopped := time.Now()
	w.Await("the worker to say that Temporal is away", 30*time.Second, func() (bool, string) {
		ready, up := get(w, w.Lab.WorkerHealthURL()+"/readyz"), get(w, w.Lab.WorkerMetricsURL()+"/metrics")
		return strings.Contains(ready, "the Temporal server has not answered") && strings.Contains(up, "\ntenon_temporal_up 0\n"), ready
	})
	w.T.Logf("the worker said so after %s", time.Since(stopped).Round(time.Second))

	if err := w.Lab.Kill(lab.Worker, syscall.SIGKILL); err != nil {
		w.T.Fatal(err)
	}
	w.Await("the worker to start without Temporal", time.Minute, func() (bool, string) {
		ready := get(w, w.Lab.WorkerHealthURL()+"/readyz")
		return strings.Contains(ready, "the Temporal server has not answered") && !strings.Contains(ready, "not complete"), ready
	})
	id := taken.Status.ProviderID[strings.LastIndexByte(taken.Status.ProviderID, '/')+1:]
	w.Sim(http.MethodPost, "/_sim/event", map[string]any{"event": "spot-interruption", "instances": []string{id}}, nil)
	w.Await("the node to be closed", 30*time.Second, func() (bool, string) {
		for _, node := range w.Nodes() {
			if node.Name == taken.Status.NodeName {
				return slices.ContainsFunc(node.Spec.Taints, isDisrupted), fmt.Sprint(node.Spec.Taints)
			}
		}
		return false, "there is no Node " + taken.Status.NodeName
	})
	w.Apply(pods("away", 3))

	resume(w)
	back := time.Now()
	w.AwaitRunning("away", 3, 30*time.Second)
	w.Await("the node that was taken back to be gone", 30*time.Second, func() (bool, string) {
		return !slices.ContainsFunc(w.Living(), func(i ec2sim.Instance) bool { return i.ID == id }), "its instance lives"
	})
	w.T.Logf("everything was done %s after Temporal was back", time.Since(back).Round(time.Second))
	if more := len(w.Instances()) - launched; more != 3 {
		w.T.Errorf("%d instances were launched for two new pods and one that moved", more)
	}
	empty(w, "away")
}

// temporalLost deletes all of Temporal's data while one machine is requested and unavailable: every claim is adopted, and
// nothing is launched twice.
func temporalLost(w *world.World) {
	w.Apply(pods("lost", 3))
	w.AwaitRunning("lost", 3, 2*time.Minute)
	launched := len(w.Instances())
	w.Faults(ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Code: "InsufficientInstanceCapacity"}}})
	w.Apply(pods("lost", 4))
	w.Await("a claim without a machine", time.Minute, func() (bool, string) { return len(w.Claims()) == 4, fmt.Sprint(len(w.Claims()), " claims") })
	halt(w)
	for _, file := range data(w) {
		if err := os.Remove(file); err != nil {
			w.T.Fatal(err)
		}
	}
	w.Heal()
	resume(w)
	world.AwaitAdopted(w, 4)
	w.AwaitRunning("lost", 4, time.Minute)
	if more := len(w.Instances()) - launched; more != 1 {
		w.T.Errorf("%d instances were launched for one pod", more)
	}
	empty(w, "lost")
}

// temporalRestored restores an older state of Temporal, as from a backup: nodes have come and gone since.
func temporalRestored(w *world.World) {
	w.Apply(pods("restored", 2))
	w.AwaitRunning("restored", 2, 2*time.Minute)
	backup := w.T.TempDir()
	halt(w)
	copyFiles(w, data(w), backup)
	resume(w)
	w.Apply(pods("restored", 0))
	w.AwaitNothing(3 * time.Minute)
	w.Apply(pods("restored", 3))
	w.AwaitRunning("restored", 3, 2*time.Minute)
	launched := len(w.Instances())
	halt(w)
	for _, file := range data(w) {
		if err := os.Remove(file); err != nil {
			w.T.Fatal(err)
		}
	}
	saved, err := filepath.Glob(filepath.Join(backup, "*"))
	if err != nil {
		w.T.Fatal(err)
	}
	copyFiles(w, saved, filepath.Dir(w.Lab.TemporalData()))
	resume(w)
	world.AwaitAdopted(w, 3)
	w.AwaitRunning("restored", 3, time.Minute)
	if more := len(w.Instances()) - launched; more != 0 {
		w.T.Errorf("%d instances were launched for pods that ran", more)
	}
	empty(w, "restored")
}

func halt(w *world.World) {
	w.T.Helper()
	if err := w.Lab.Halt(lab.Temporal); err != nil {
		w.T.Fatal(err)
	}
}

func resume(w *world.World) {
	w.T.Helper()
	if err := w.Lab.Resume(w.Context(), lab.Temporal); err != nil {
		w.T.Fatal(err)
	}
}

// data returns the files that hold all of Temporal's data.
func data(w *world.World) []string {
	w.T.Helper()
	files, err := filepath.Glob(w.Lab.TemporalData() + "*")
	if err != nil || len(files) == 0 {
		w.T.Fatalf("no data of Temporal: %v", err)
	}
	return files
}

func copyFiles(w *world.World, files []string, to string) {
	w.T.Helper()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			w.T.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), content, 0o600); err != nil {
			w.T.Fatal(err)
		}
	}
}

// get returns the response from an address, or the error.
func get(w *world.World, url string) string {
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
