package scale_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// memoryLimit is the limit of the containers, which must be enough for a worker with 2,000 nodes.
const memoryLimit = "350Mi"

// replica is one worker process, as a pod of the chart's Deployment runs it.
type replica struct {
	name string
	cmd  *exec.Cmd
	died chan error
	// metrics is the address at which it serves metrics and profiles.
	metrics string
}

// startReplicas stops the laboratory's own worker and starts others instead, which reach the API server through a Wire that
// counts bytes, and get a memory limit as in the chart.
func startReplicas(t testing.TB, w *world.World, count int) ([]*replica, *world.Wire) {
	t.Helper()
	if err := w.Lab.Halt(lab.Worker); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(filepath.Join(w.Lab.Dir(), "config", "tenon.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	var passed *world.Wire
	for _, cluster := range config.Clusters {
		passed = world.NewWire(t, cluster.Server[len("https://"):])
		cluster.Server = "https://" + passed.Address()
	}
	kubeconfig := filepath.Join(w.Lab.Dir(), "config", "metered.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	replicas := make([]*replica, count)
	for i := range replicas {
		replicas[i] = startReplica(t, w, kubeconfig, fmt.Sprintf("replica-%d", i))
	}
	return replicas, passed
}

func startReplica(t testing.TB, w *world.World, kubeconfig, name string) *replica {
	t.Helper()
	log, err := os.Create(filepath.Join(w.Lab.Dir(), "logs", name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	metrics := freeAddress(t)
	r := &replica{name: name, metrics: metrics, cmd: w.Command("worker", "--identity="+name, "--metrics-address="+metrics, "--enable-profiling", "--health-probe-address=", "--leader-election-namespace=kube-system"), died: make(chan error, 1)}
	r.cmd.Env = append(r.cmd.Env, "KUBECONFIG="+kubeconfig, "TENON_MEMORY_LIMIT="+memoryLimit)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = world.DieTogether()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		r.died <- r.cmd.Wait()
		_ = log.Close()
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.died:
		case <-time.After(20 * time.Second):
			_ = r.cmd.Process.Kill()
		}
	})
	return r
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// profile saves a heap profile from the last garbage collection.
func (r *replica) profile(t testing.TB, dir, when string) {
	t.Helper()
	response, err := http.Get("http://" + r.metrics + "/debug/pprof/heap")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, r.name+"-"+when+".pprof"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// alive fails the test if the process has died.
func (r *replica) alive(t testing.TB) {
	t.Helper()
	select {
	case err := <-r.died:
		r.died <- err
		t.Fatalf("a worker died: %v", err)
	default:
	}
}

// peak returns the largest resident memory since the last forgetPeak, in MiB.
func (r *replica) peak(t testing.TB) float64 { return peakOf(t, r.cmd.Process.Pid) }

// peakOf reads VmHWM of a process, in MiB.
func peakOf(t testing.TB, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if value, found := bytes.CutPrefix(line, []byte("VmHWM:")); found {
			kib, err := strconv.ParseFloat(string(bytes.Fields(value)[0]), 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatal("the kernel does not say how much memory a process has had")
	return 0
}

// forgetPeak resets the kernel's peak measurement.
func (r *replica) forgetPeak(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", r.cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// cpu returns the CPU time that the process has used.
func (r *replica) cpu(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// utime and stime, in hundredths of a second, are the 12th and 13th field after the name in parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
