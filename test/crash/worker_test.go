package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/test/world"
)

// ownWorker is a worker that the test runs itself, beside the laboratory's or in its place.
type ownWorker struct {
	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped bool
	ended   sync.WaitGroup
}

// sweeping lets every worker of this test sweep as often as allowed.
const sweeping = "--sweep-interval=10s"

// failpoints are the points at which workers die.
type failpoints struct {
	// dir records which have struck; env passes them to a worker.
	dir string
	env []string
}

// newFailpoints arms points.
func newFailpoints(t testing.TB, points []string) failpoints {
	dir := t.TempDir()
	return failpoints{dir, []string{
		failpoint.PointsVariable + "=" + strings.Join(points, ","),
		failpoint.DirVariable + "=" + dir,
		// Longer than the pause between two heartbeats of any activity, short enough that sixty deaths take minutes.
		failpoint.HeartbeatVariable + "=6s",
		failpoint.StableVariable + "=" + stable.String(),
		failpoint.ServeVariable + "=" + patience.String(),
	}}
}

// restartPause keeps a worker that cannot start from using up the machine's CPU time.
const restartPause = 100 * time.Millisecond

// startWorker starts a worker with the same rights as the laboratory's own. It is restarted whenever it dies.
func startWorker(w *world.World, f failpoints, identity string) *ownWorker {
	w.T.Helper()
	o := &ownWorker{}
	o.ended.Go(func() {
		// The kernel kills the worker when the thread that started it ends.
		runtime.LockOSThread()
		for {
			running, err := o.start(w, f, identity)
			if err != nil {
				w.T.Error(err)
			}
			if !running {
				return
			}
			_ = o.cmd.Wait()
			time.Sleep(restartPause)
		}
	})
	w.T.Cleanup(o.end)
	return o
}

// start starts the process, unless the worker has been stopped.
func (o *ownWorker) start(w *world.World, f failpoints, identity string) (running bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped || w.Context().Err() != nil {
		return false, nil
	}
	log, err := os.OpenFile(filepath.Join(w.Lab.Dir(), "logs", "own-worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { _ = log.Close() }()
	cmd := w.Command("worker", "--metrics-address=", "--health-probe-address=", "--leader-election-namespace=kube-system", "--identity="+identity, sweeping)
	cmd.Env = append(cmd.Env, "KUBECONFIG="+filepath.Join(w.Lab.Dir(), "config", "tenon.kubeconfig"))
	cmd.Env = append(cmd.Env, f.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = world.DieTogether()
	if err := cmd.Start(); err != nil {
		return false, err
	}
	o.cmd = cmd
	return true, nil
}

// awaitWork waits until the worker polls Temporal for work.
func (o *ownWorker) awaitWork(w *world.World) {
	w.T.Helper()
	w.Await("the worker polls", maxAwait, func() (bool, string) {
		queue, err := w.Temporal.DescribeTaskQueue(w.Context(), w.Lab.Cluster(), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return false, err.Error()
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.cmd == nil {
			return false, "not started"
		}
		for _, poller := range queue.GetPollers() {
			if strings.HasPrefix(poller.GetIdentity(), fmt.Sprintf("%d@", o.cmd.Process.Pid)) {
				return true, ""
			}
		}
		return false, fmt.Sprint(queue.GetPollers())
	})
}

// end kills the worker for good. Ending it again does nothing.
func (o *ownWorker) end() {
	o.mu.Lock()
	o.stopped = true
	if o.cmd != nil {
		_ = o.cmd.Process.Kill()
	}
	o.mu.Unlock()
	o.ended.Wait()
}
