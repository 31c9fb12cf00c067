package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lease is the Kubernetes Lease that says who acts on the cluster.
type Lease struct {
	// Name and Namespace default to Karpenter's own, so that Tenon and Karpenter exclude each other.
	Name, Namespace string
	// Identity tells the holders apart. A process that restarts with the identity it had keeps the Lease at once.
	Identity string
	// Held is told who holds the Lease, again and again, and empty while nobody does.
	Held func(holder string)
}

// The Lease's times. A holder that dies without letting go is replaced after leaseFor; renewing costs one write every
// leaseRetry.
const (
	leaseFor   = 15 * time.Second
	leaseRenew = 10 * time.Second
	leaseRetry = 3 * time.Second
)

// errLeaseLost means another process holds the Lease now.
var errLeaseLost = errors.New("the lease is lost")

// Lead waits for the Lease, runs while it is held, and lets it go when ctx ends. Losing the Lease while running is an
// error: what ran under it has been cancelled, and the caller starts again.
func Lead(ctx context.Context, config *rest.Config, lease Lease, log *zap.Logger, run func(context.Context) error) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("lease client: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	led := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: lease.Name, Namespace: lease.Namespace},
			Client:     kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: lease.Identity},
		},
		LeaseDuration: leaseFor, RenewDeadline: leaseRenew, RetryPeriod: leaseRetry,
		ReleaseOnCancel: true,
		Name:            lease.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				led <- run(ctx)
				stop()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				log.Info("lease", zap.String("name", lease.Name), zap.String("holder", holder), zap.Bool("mine", holder == lease.Identity))
			},
		},
	})
	if err != nil {
		return fmt.Errorf("lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	go observe(ctx, elector, lease.Held)
	elector.Run(ctx)
	if ctx.Err() == nil {
		return errors.Join(errLeaseLost, <-led)
	}
	select {
	case err := <-led:
		return err
	default:
		return ctx.Err()
	}
}

// observeEvery is how often the holder is told. The elector looks at the Lease every leaseRetry.
const observeEvery = 500 * time.Millisecond

// observe tells who holds the Lease until ctx ends.
func observe(ctx context.Context, elector *leaderelection.LeaderElector, held func(holder string)) {
	for {
		held(elector.GetLeader())
		if sleep(ctx, observeEvery) != nil {
			return
		}
	}
}
