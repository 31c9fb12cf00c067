// Package lab runs a whole world for Tenon on one machine, without containers: a real Kubernetes control plane (etcd,
// kube-apiserver, kube-scheduler, kube-controller-manager), kwok in the place of the kubelets, Temporal's development
// server with its web UI, the simulated EC2 and Tenon's worker. `tenon dev` is this package with a command line; the
// end-to-end tests start the parts they need.
//
// # One directory
//
// Everything a lab knows is in one directory: what must survive (etcd's data, Temporal's SQLite file, the simulator's
// state, keys, the ports chosen) and what is written again at every start (kubeconfigs, component configurations, env,
// pids/NAME.pid, logs/NAME.log). Starting on a directory that holds a lab resumes it, however it ended. A lock held on
// a file in the directory keeps a second lab away; the kernel frees it when its holder dies.
//
// # Processes
//
// Every component is a child process, supervised: one that dies is started again after a pause that doubles from 0.2 s
// to 5 s. Components start as soon as those they need are healthy, and stop in the reverse order. The kernel kills the
// children should the supervising process die without stopping them (on Linux), so nothing is ever left behind.
//
// # Ports
//
// All listeners are on 127.0.0.1, on ports that were free when the directory was first used. They are kept for as long
// as they are free, so that a UI opened in a browser survives a restart.
//
// # What is different from a cluster in production
//
// Every component has its own user in the API server, which shows in audit logs. Tenon's worker has the rights that the
// Helm chart grants it, and in the simulated AWS those of deploy/iam; the simulator and kwok, which have no counterpart in production, have all. etcd does not wait
// for the disk: a power cut may lose data, a killed process does not. Nodes exist only where the simulated cloud
// created them: kwok manages nodes labelled SimulatedNodeLabel and no others.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Component names one process of a lab; logs and pid files are named by it.
type Component string

// The components of a lab, in the order in which they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
	Temporal          Component = "temporal"
	EC2Sim            Component = "ec2sim"
	Worker            Component = "worker"
)

// ControlPlane returns the components of the Kubernetes cluster alone.
func ControlPlane() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// All returns every component.
func All() []Component { return append(ControlPlane(), Temporal, EC2Sim, Worker) }

// DefaultCluster is the name of the cluster when Options names none.
const DefaultCluster = "tenon-dev"

// Options say what Start starts. Only Dir and Bin are required.
type Options struct {
	// Dir is the lab's directory; it is created when missing.
	Dir string
	// Bin is the directory that holds kubelab, temporal and tenon.
	Bin string
	// Tenon is the program that the simulator and the worker are run from, tenon in Bin when empty.
	Tenon string
	// Supervisor is the name under which the calling process has a pid file among those of the components; none
	// when empty.
	Supervisor string
	// Cluster names the cluster. A directory keeps the name it was first started with.
	Cluster string
	// Components are the processes to run, all of them when empty. A component is not made to wait for one that is left
	// out.
	Components []Component
	// Bare leaves the cluster without the custom resource definitions and the default NodePool and EC2NodeClass.
	Bare bool
	// BootDelay is how long a simulated instance takes to boot; zero leaves it to the simulator.
	BootDelay time.Duration
	// NodeLease is the duration of the leases that kwok renews for its nodes, 40 s when zero. Half of it is how long
	// a node's death may go unnoticed at least; the node controller acts after 50 s.
	NodeLease time.Duration
	// SchedulerQPS is how many requests the kube-scheduler may make in a second, a thousand when zero. It writes down at this
	// rate for which pods it found no node, and binds pods.
	SchedulerQPS int
	// Large spares the machine what thousands of nodes cost and nobody looks at: leases of nodes are hardly renewed, no node
	// that falls silent is noticed, and the kube-scheduler scores a tenth of the nodes and spreads pods only where they ask
	// for it. Where pods end up is different from a cluster without it.
	Large bool
	// Args are further command-line arguments of a component, Env further variables as NAME=VALUE.
	Args map[Component][]string
	Env  map[Component][]string
	// Progress receives one line per event worth telling a person; nil discards them.
	Progress io.Writer
}

// Lab is a running lab. Its methods may be called from several goroutines.
type Lab struct {
	opts      Options
	layout    layout
	state     *state
	lock      *lock
	reserved  reservedPorts
	spawner   *spawner
	progress  *progress
	processes []*process
}

// ErrRunning is wrapped by the error of Start when another process already runs a lab on the directory.
var ErrRunning = errors.New("already runs")

// Start starts the lab, or resumes the one that the directory holds, and returns when every component is healthy and
// the resources are applied. On an error nothing is left running. The context bounds starting only; a started lab
// runs until Stop.
func Start(ctx context.Context, opts Options) (*Lab, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	layout := newLayout(opts.Dir)
	if err := layout.create(); err != nil {
		return nil, err
	}
	lock, err := acquire(layout.lockFile())
	if err != nil {
		return nil, fmt.Errorf("starting a lab in %s: %w", opts.Dir, err)
	}
	l := &Lab{opts: opts, layout: layout, lock: lock, progress: newProgress(opts.Progress)}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context) error {
	if err := killLeftovers(l.layout); err != nil {
		return err
	}
	if l.opts.Supervisor != "" {
		if err := l.layout.writePID(l.opts.Supervisor, os.Getpid()); err != nil {
			return err
		}
	}
	state, reserved, err := openState(l.layout, l.opts.Cluster)
	if err != nil {
		return err
	}
	l.state, l.reserved = state, reserved
	if err := writePKI(l.layout); err != nil {
		return err
	}
	if err := l.writeFiles(); err != nil {
		return err
	}
	l.spawner = newSpawner()
	for _, spec := range l.specs() {
		if slices.Contains(l.opts.Components, spec.name) {
			l.processes = append(l.processes, newProcess(spec, l))
		} else {
			reserved.release(spec.ports...) // somebody else may run the component there
		}
	}
	if err := l.startProcesses(ctx); err != nil {
		return err
	}
	return os.WriteFile(l.layout.envFile(), l.envFile(), 0o600)
}

// Stop ends every process, the last started first, and frees the directory. Everything that must survive is kept.
// Calling it again does nothing.
func (l *Lab) Stop() error {
	for _, p := range slices.Backward(l.processes) {
		p.stop()
	}
	return l.release()
}

// Crash kills every process at once and ends supervision, as a power cut would. Start on the same directory resumes.
func (l *Lab) Crash() error {
	for _, p := range l.processes {
		p.crash()
	}
	for _, p := range l.processes {
		p.stop()
	}
	return l.release()
}

// ForgetCluster removes what etcd has kept, after Stop or Crash: Start makes another cluster of the same name in the
// directory, for Temporal and the simulator as they were.
func (l *Lab) ForgetCluster() error {
	if err := os.RemoveAll(l.layout.etcdData()); err != nil {
		return fmt.Errorf("removing etcd's data: %w", err)
	}
	l.state.DefaultsApplied = false
	return l.state.save(l.layout)
}

// TemporalData is the file that holds all Temporal knows. It may be copied, replaced or removed while Temporal is halted.
func (l *Lab) TemporalData() string { return l.layout.temporalDB() }

func (l *Lab) release() error {
	l.reserved.release(allPorts()...)
	if l.spawner != nil {
		l.spawner.close()
	}
	if l.opts.Supervisor != "" {
		_ = os.Remove(l.layout.pidFile(l.opts.Supervisor))
	}
	return l.lock.release()
}

// Kill sends a signal to a component; supervision starts it again when it dies of it.
func (l *Lab) Kill(c Component, signal syscall.Signal) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	return p.signal(signal)
}

// Halt stops a component in order and keeps it stopped until Resume.
func (l *Lab) Halt(c Component) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	p.stop()
	return nil
}

// Resume starts a halted component and waits until it is healthy. A running one is only waited for.
func (l *Lab) Resume(ctx context.Context, c Component) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	p.start()
	return p.awaitHealthy(ctx)
}

// Reconfigure stops a component in order and starts it again with other further arguments than those Options had for it.
func (l *Lab) Reconfigure(ctx context.Context, c Component, args ...string) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	p.stop()
	l.opts.Args = maps.Clone(l.opts.Args)
	if l.opts.Args == nil {
		l.opts.Args = map[Component][]string{}
	}
	l.opts.Args[c] = args
	for _, s := range l.specs() {
		if s.name == c {
			p.spec = s
		}
	}
	return l.Resume(ctx, c)
}

// PID returns the process id a component has at the moment, 0 while it is down.
func (l *Lab) PID(c Component) (int, error) {
	p, err := l.process(c)
	if err != nil {
		return 0, err
	}
	return p.pid(), nil
}

func (l *Lab) process(c Component) (*process, error) {
	for _, p := range l.processes {
		if p.spec.name == c {
			return p, nil
		}
	}
	return nil, fmt.Errorf("this lab runs no %s", c)
}

// Dir returns the lab's directory as an absolute path.
func (l *Lab) Dir() string { return l.layout.dir }

// Cluster returns the cluster's name.
func (l *Lab) Cluster() string { return l.state.Cluster }

// AdminUser is who the API server takes the user of Kubeconfig for.
const AdminUser = string(userAdmin)

// Kubeconfig returns the path of a kubeconfig with all rights.
func (l *Lab) Kubeconfig() string { return l.layout.kubeconfig(userAdmin) }

// RESTConfig returns a client configuration with all rights and without client-side throttling.
func (l *Lab) RESTConfig() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// LogFile returns the path of a component's log.
func (l *Lab) LogFile(c Component) string { return l.layout.log(c) }

// APIServerURL returns the address of the API server.
func (l *Lab) APIServerURL() string { return "https://" + l.state.address(portAPIServer) }

// UIURL returns the address of Temporal's web UI.
func (l *Lab) UIURL() string { return "http://" + l.state.address(portTemporalUI) }

// EC2SimURL returns the address of the simulated AWS.
func (l *Lab) EC2SimURL() string { return "http://" + l.state.address(portEC2Sim) }

// WorkerHealthURL returns the address of the worker's probes.
func (l *Lab) WorkerHealthURL() string { return "http://" + l.state.address(portWorkerHealth) }

// WorkerMetricsURL returns the address of the worker's metrics.
func (l *Lab) WorkerMetricsURL() string { return "http://" + l.state.address(portWorkerMetrics) }

// TemporalAddress returns host and port of Temporal's gRPC frontend.
func (l *Lab) TemporalAddress() string { return l.state.address(portTemporal) }

func (o *Options) complete() error {
	if o.Dir == "" || o.Bin == "" {
		return errors.New("a lab needs a directory and a directory of binaries")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return fmt.Errorf("lab directory: %w", err)
	}
	if o.Bin, err = filepath.Abs(o.Bin); err != nil {
		return fmt.Errorf("directory of binaries: %w", err)
	}
	if len(o.Components) == 0 {
		o.Components = All()
	}
	if o.NodeLease == 0 {
		o.NodeLease = 40 * time.Second
		if o.Large {
			o.NodeLease = 2 * time.Hour
		}
	}
	if o.Tenon == "" {
		o.Tenon = filepath.Join(o.Bin, "tenon")
	}
	for _, c := range o.Components {
		if _, err := os.Stat(o.program(c)); err != nil {
			return fmt.Errorf("the program of %s is missing, run `make lab build`: %w", c, err)
		}
	}
	return nil
}

// program returns the path of the binary that a component is run from.
func (o *Options) program(c Component) string {
	switch c {
	case Temporal:
		return filepath.Join(o.Bin, "temporal")
	case EC2Sim, Worker:
		return o.Tenon
	default:
		return filepath.Join(o.Bin, "kubelab")
	}
}
