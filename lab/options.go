package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

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

// complete fills in what was left out, and checks that the programs are there.
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
