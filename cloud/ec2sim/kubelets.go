package ec2sim

import (
	"context"

	"k8s.io/client-go/kubernetes"
)

// kubelets brings booted instances into a cluster.
type kubelets struct {
	sim    *Server
	client kubernetes.Interface
	woken  chan struct{}
}

func newKubelets(s *Server, client kubernetes.Interface) *kubelets {
	return &kubelets{sim: s, client: client, woken: make(chan struct{}, 1)}
}

// wake makes the loop look again.
func (k *kubelets) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

func (k *kubelets) run(ctx context.Context) { <-ctx.Done() }

func (s *Server) wakeKubelets() {
	if s.kubelets != nil {
		s.kubelets.wake()
	}
}
