package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// port names one listener of a lab.
type port string

const (
	portEtcd              port = "etcd"
	portEtcdPeer          port = "etcd-peer"
	portAPIServer         port = "kube-apiserver"
	portControllerManager port = "kube-controller-manager"
	portScheduler         port = "kube-scheduler"
	portKwok              port = "kwok"
	portTemporal          port = "temporal"
	portTemporalUI        port = "temporal-ui"
	portPostgres          port = "postgres"
	portEC2Sim            port = "ec2sim"
	portWorkerHealth      port = "worker-health"
	portWorkerMetrics     port = "worker-metrics"
)

func allPorts() []port {
	return append(temporalServerPorts(), []port{
		portEtcd, portEtcdPeer, portAPIServer, portControllerManager, portScheduler, portKwok,
		portTemporal, portTemporalUI, portPostgres, portEC2Sim, portWorkerHealth, portWorkerMetrics,
	}...)
}

// state is the part of a lab that its directory stores between starts.
type state struct {
	Cluster string `json:"cluster"`
	// Provider is ProviderAWS where it is empty.
	Provider string       `json:"provider,omitempty"`
	Ports    map[port]int `json:"ports"`
	// DefaultsApplied is true once the default NodePool and node class have been created. From then on they belong to
	// the user: a later start neither restores nor changes them.
	DefaultsApplied bool `json:"defaultsApplied"`
}

// openState reads the directory's state, or creates it, and replaces ports that are no longer free. It reserves all
// ports. It fails if the directory belongs to a cluster of another name or provider.
func openState(l layout, cluster, provider string) (*state, reservedPorts, error) {
	s := &state{}
	data, err := os.ReadFile(l.stateFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Cluster = cluster
		if s.Cluster == "" {
			s.Cluster = DefaultCluster
		}
		s.Provider = provider
	case err != nil:
		return nil, nil, fmt.Errorf("reading the lab's state: %w", err)
	default:
		if err := json.Unmarshal(data, s); err != nil {
			return nil, nil, fmt.Errorf("reading the lab's state %s: %w", l.stateFile(), err)
		}
		if cluster != "" && cluster != s.Cluster {
			return nil, nil, fmt.Errorf("%s holds a lab of cluster %q, not %q: use another directory", l.dir, s.Cluster, cluster)
		}
		if s.Provider = cmp.Or(s.Provider, ProviderAWS); s.Provider != provider {
			return nil, nil, fmt.Errorf("%s holds a lab of provider %q, not %q: use another directory", l.dir, s.Provider, provider)
		}
	}
	reserved, err := s.choosePorts()
	if err != nil {
		return nil, nil, err
	}
	if err := s.save(l); err != nil {
		reserved.release(allPorts()...)
		return nil, nil, err
	}
	return s, reserved, nil
}

func (s *state) save(l layout) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the lab's state: %w", err)
	}
	if err := writeAtomically(l.stateFile(), data); err != nil {
		return fmt.Errorf("writing the lab's state: %w", err)
	}
	return nil
}

// address returns host and port of a listener.
func (s *state) address(p port) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Ports[p]))
}

// reservedPorts are listeners on the ports that a lab chose. They prevent other processes from using the ports until the
// components listen themselves.
type reservedPorts map[port]net.Listener

// release frees ports. It ignores ports that are free already.
func (r reservedPorts) release(ports ...port) {
	for _, p := range ports {
		if listener := r[p]; listener != nil {
			_ = listener.Close() // nothing was ever accepted
		}
	}
}

// choosePorts keeps the ports that are still free, finds new ones for the others, and reserves them all.
func (s *state) choosePorts() (reservedPorts, error) {
	const attempts = 1000
	ports, reserved := make(map[port]int, len(allPorts())), reservedPorts{}
	for _, p := range allPorts() {
		number := s.Ports[p]
		for range attempts {
			if number != 0 {
				if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(number))); err == nil {
					ports[p], reserved[p] = number, listener
					break
				}
			}
			number = randomPort()
		}
		if reserved[p] == nil {
			reserved.release(allPorts()...)
			return nil, errors.New("found no free port on 127.0.0.1")
		}
	}
	s.Ports = ports
	return reserved, nil
}

// randomPort returns a random port below the range that kernels use for outgoing connections, so that a restarted
// component finds its port free again.
func randomPort() int {
	const lowest, highest = 20000, 32000
	return lowest + rand.IntN(highest-lowest)
}
