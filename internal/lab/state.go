package lab

import (
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
	portEC2Sim            port = "ec2sim"
	portWorkerHealth      port = "worker-health"
	portWorkerMetrics     port = "worker-metrics"
)

func allPorts() []port {
	return []port{
		portEtcd, portEtcdPeer, portAPIServer, portControllerManager, portScheduler, portKwok,
		portTemporal, portTemporalUI, portEC2Sim, portWorkerHealth, portWorkerMetrics,
	}
}

// state is what a directory remembers about its lab from one start to the next.
type state struct {
	Cluster string       `json:"cluster"`
	Ports   map[port]int `json:"ports"`
	// DefaultsApplied says that the default NodePool and EC2NodeClass were created once. They belong to the user from
	// then on: a later start neither restores nor changes them.
	DefaultsApplied bool `json:"defaultsApplied"`
}

// openState reads the directory's state, or makes it, and replaces the ports that are not free any more. It fails
// when the directory belongs to a cluster of another name.
func openState(l layout, cluster string) (*state, error) {
	s := &state{}
	data, err := os.ReadFile(l.stateFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Cluster = cluster
		if s.Cluster == "" {
			s.Cluster = DefaultCluster
		}
	case err != nil:
		return nil, fmt.Errorf("reading the lab's state: %w", err)
	default:
		if err := json.Unmarshal(data, s); err != nil {
			return nil, fmt.Errorf("reading the lab's state %s: %w", l.stateFile(), err)
		}
		if cluster != "" && cluster != s.Cluster {
			return nil, fmt.Errorf("%s holds a lab of cluster %q, not %q: use another directory", l.dir, s.Cluster, cluster)
		}
	}
	if err := s.choosePorts(); err != nil {
		return nil, err
	}
	return s, s.save(l)
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

// choosePorts keeps the ports that are free and finds new ones for the others.
func (s *state) choosePorts() error {
	ports := make(map[port]int, len(allPorts()))
	taken := map[int]bool{}
	for _, p := range allPorts() {
		number := s.Ports[p]
		for attempts := 0; number == 0 || taken[number] || !free(number); attempts++ {
			if attempts == 1000 {
				return errors.New("found no free port on 127.0.0.1")
			}
			number = randomPort()
		}
		ports[p], taken[number] = number, true
	}
	s.Ports = ports
	return nil
}

// randomPort picks from below the range that kernels take the ports of outgoing connections from: a port found free
// there stays free until its component listens.
func randomPort() int {
	const lowest, highest = 20000, 32000
	return lowest + rand.IntN(highest-lowest)
}

func free(number int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(number)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
