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

// Lease is the Kubernetes Lease whose holder acts on the cluster.
type Lease struct {
	// Name and Namespace default to Karpenter's own, so that Tenon and Karpenter exclude each other.
	Name, Namespace string
	// Identity distinguishes the holders. A process that restarts with the same identity keeps the Lease at once.
	Identity string
	// Held is called with the holder, or with "" when there is none, whenever the Lease is seen to be taken, renewed or
	// released. This was the state at the given instant: the holder has the Lease for LeaseFor from then on.
	Held func(holder string, at time.Time)
	// Settle waits until nothing in this process acts under the Lease any more. It is called after the process was
	// asked to end.
	Settle func()
}

// LeaseFor is how long a Lease lasts without being renewed.
const LeaseFor = 15 * time.Second

// A holder that dies without releasing the Lease is replaced after LeaseFor; renewing costs one write every leaseRetry.
const (
	leaseRenew = 10 * time.Second
	leaseRetry = 3 * time.Second
)

// errLeaseLost means that another process holds the Lease now.
var errLeaseLost = errors.New("the lease is lost")

// Lead waits for the Lease, calls run while it holds it, and releases it when ctx ends, once nothing acts any more.
// Losing the Lease while run is running is an error: what ran under it has been cancelled, and the caller starts again.
func Lead(ctx context.Context, config *rest.Config, lease Lease, log *zap.Logger, run func(context.Context) error) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("lease client: %w", err)
	}
	// The elector renews the Lease until electing ends, and then releases it.
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
				// The elector would go on trying to renew another holder's Lease for up to leaseRenew.
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

// errNotOurs means that another process has taken the Lease that this one was about to release.
var errNotOurs = errors.New("another process holds the Lease")

// ownLock reports the holder of the Lease as soon as it is read or written. It also keeps a process from releasing a
// Lease that another one has taken: a process that was suspended for longer than the Lease lasts cannot renew it when
// it resumes, and client-go then clears the holder, whoever that is.
type ownLock struct {
	resourcelock.Interface
	held func(holder string, at time.Time)
	// last is the Lease as it was last read or written. The elector never does two such calls at once.
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

// Create creates the Lease.
func (l *ownLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	at := time.Now()
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.see(record, at)
	}
	return err
}

// Update writes the Lease as it was last read. It returns errNotOurs if that would release another holder's Lease.
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

// see records and reports the holder that the Lease had at a moment.
func (l *ownLock) see(record resourcelock.LeaderElectionRecord, at time.Time) {
	l.last = record
	l.held(record.HolderIdentity, at)
}
