package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// DefaultCluster is the cluster's name if Options does not set one.
const DefaultCluster = "tenon-dev"

// The values of Options.Provider. They are those of the worker's flag --provider.
const (
	ProviderAWS  = "aws"
	ProviderKwok = "kwok"
)

// Options configure Start. Only Dir and Bin are required.
type Options struct {
	// Dir is the lab's directory; Start creates it if it is missing.
	Dir string
	// Bin is the directory that holds kubelab, temporal and tenon-lab.
	Bin string
	// TenonLab is the program that runs the simulator and the worker; tenon-lab in Bin when empty.
	TenonLab string
	// Supervisor is the name of a pid file for the calling process, next to those of the components; none when empty.
	Supervisor string
	// Cluster is the cluster's name. A directory keeps the name it was first started with.
	Cluster string
	// Provider is what runs the instances: ProviderAWS, which is the simulated EC2, or ProviderKwok, for which there is no
	// simulator. ProviderAWS when empty. A directory keeps the provider it was first started with.
	Provider string
	// Postgres runs Temporal's released server on PostgreSQL, as deploy/temporal/values.yaml sets it up, in place of the
	// development server. It has no web UI. PostgreSQL refuses to run as root: the user nobody runs it then, and has to
	// be able to reach Dir, whose own mode is changed for that.
	Postgres bool
	// Components are the processes to run; all of them when empty. A component does not wait for one that is left out.
	Components []Component
	// Bare leaves the cluster without the custom resource definitions and the default NodePool and node class.
	Bare bool
	// BootDelay is how long a simulated instance takes to boot; zero means the simulator's default.
	BootDelay time.Duration
	// NodeLease is the duration of the node leases, which kwok renews after a quarter of it; when zero it is 40 s, or 2 h with
	// Large. A node's death may go unnoticed for at least half of it; the node controller acts after 50 s.
	NodeLease time.Duration
	// SchedulerQPS limits the kube-scheduler's requests per second; 1000 when zero. Both binding pods and recording that
	// a pod is unschedulable count towards it.
	SchedulerQPS int
	// Large avoids work that costs much with thousands of nodes and that nobody looks at: node leases are hardly renewed,
	// silent nodes go unnoticed, and the kube-scheduler scores a tenth of the nodes and spreads pods only where they ask
	// for it. Pods may end up on other nodes than without it.
	Large bool
	// Args are additional command-line arguments per component, Env additional variables as NAME=VALUE.
	Args map[Component][]string
	Env  map[Component][]string
	// Progress receives one line per notable event; nil discards them.
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
	if o.Postgres && slices.Contains(o.Components, Temporal) {
		o.Components = append(slices.Clone(o.Components), Postgres)
	}
	switch o.Provider {
	case "":
		o.Provider = ProviderAWS
	case ProviderAWS:
	case ProviderKwok:
		o.Components = slices.DeleteFunc(slices.Clone(o.Components), func(c Component) bool { return c == EC2Sim })
	default:
		return fmt.Errorf("provider %q: must be %s or %s", o.Provider, ProviderAWS, ProviderKwok)
	}
	if o.NodeLease == 0 {
		o.NodeLease = 40 * time.Second
		if o.Large {
			o.NodeLease = 2 * time.Hour
		}
	}
	if o.TenonLab == "" {
		o.TenonLab = filepath.Join(o.Bin, "tenon-lab")
	}
	for _, c := range o.Components {
		if _, err := os.Stat(o.program(c)); err != nil {
			return fmt.Errorf("the program of %s is missing, run `make lab build`, and with PostgreSQL also `make lab-postgres`: %w", c, err)
		}
	}
	return nil
}

// program returns the path of a component's binary.
func (o *Options) program(c Component) string {
	switch c {
	case Postgres:
		return o.postgres("postgres")
	case Temporal:
		if o.Postgres {
			return filepath.Join(o.Bin, "temporal-server")
		}
		return filepath.Join(o.Bin, "temporal")
	case EC2Sim, Worker:
		return o.TenonLab
	default:
		return filepath.Join(o.Bin, "kubelab")
	}
}
