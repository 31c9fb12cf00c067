package starter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
	// Held is told who holds the Lease, and empty when nobody does, whenever it has been seen to be taken, renewed or let
	// go. It was so at the given instant: the holder has it for LeaseFor from then on.
	Held func(holder string, at time.Time)
	// Settle waits until nothing acts any more under the Lease in this process, which has been told to end.
	Settle func()
}

// LeaseFor is how long a Lease lasts that is not renewed.
const LeaseFor = 15 * time.Second

// The Lease's times. A holder that dies without letting go is replaced after LeaseFor; renewing costs one write every
// leaseRetry.
const (
	leaseRenew = 10 * time.Second
	leaseRetry = 3 * time.Second
)

// errLeaseLost means another process holds the Lease now.
var errLeaseLost = errors.New("the lease is lost")

// Lead waits for the Lease, runs while it is held, and lets it go when ctx ends, once nothing acts any more. Losing the
// Lease while running is an error: what ran under it has been cancelled, and the caller starts again.
func Lead(ctx context.Context, config *rest.Config, lease Lease, log *zap.Logger, run func(context.Context) error) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("lease client: %w", err)
	}
	// The elector renews the Lease until electing ends, and then lets it go.
	electing, letGo := context.WithCancel(context.WithoutCancel(ctx))
	defer letGo()
	led := make(chan error, 1)
	var leads, taken atomic.Bool
	defer context.AfterFunc(ctx, func() {
		if !leads.Load() {
			letGo()
		}
	})()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &ownLock{held: lease.Held, Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: lease.Name, Namespace: lease.Namespace},
			Client:     kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: lease.Identity},
		}},
		LeaseDuration: LeaseFor, RenewDeadline: leaseRenew, RetryPeriod: leaseRetry,
		ReleaseOnCancel: true,
		Name:            lease.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(holding context.Context) {
				leads.Store(true)
				running, stop := context.WithCancel(holding)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				err := run(running)
				if ctx.Err() != nil {
					lease.Settle()
				}
				led <- err
				letGo()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				log.Info("lease", zap.String("name", lease.Name), zap.String("holder", holder), zap.Bool("mine", holder == lease.Identity))
				// The elector would try to renew what is another's for as long as leaseRenew.
				if leads.Load() && holder != lease.Identity && ctx.Err() == nil {
					taken.Store(true)
					letGo()
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	elector.Run(electing)
	lease.Held("", time.Now()) // until it is known who holds it now
	if electing.Err() == nil || taken.Load() {
		return errors.Join(errLeaseLost, <-led)
	}
	select {
	case err := <-led:
		return err
	default:
		return ctx.Err()
	}
}

// errNotOurs means that another process has taken the Lease, which this one was about to let go.
var errNotOurs = errors.New("another process holds the Lease")

// ownLock tells who holds the Lease as soon as that is read or written. And it keeps a process from letting a Lease go that
// another one has taken: one that slept for longer than the Lease lasts finds, when it wakes up, that it could not renew
// it, and client-go then clears whatever holder there is.
type ownLock struct {
	resourcelock.Interface
	held func(holder string, at time.Time)
	// last is the Lease as it was last read or written. The elector does one after the other.
	last resourcelock.LeaderElectionRecord
}

// Get reads the Lease.
func (l *ownLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	at := time.Now()
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && (record.HolderIdentity != l.last.HolderIdentity || !record.RenewTime.Equal(&l.last.RenewTime)) {
		l.see(*record, at)
	}
	return record, raw, err
}

// Create makes the Lease.
func (l *ownLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	at := time.Now()
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.see(record, at)
	}
	return err
}

// Update writes the Lease as it was last read.
func (l *ownLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.last.HolderIdentity != l.Identity() {
		return errNotOurs
	}
	at := time.Now()
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.see(record, at)
	}
	return err
}

// see takes in that somebody had the Lease when it was asked for.
func (l *ownLock) see(record resourcelock.LeaderElectionRecord, at time.Time) {
	l.last = record
	l.held(record.HolderIdentity, at)
}
