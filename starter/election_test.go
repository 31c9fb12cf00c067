package starter

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tenon-sh/tenon/lab/labtest"
)

// TestLeaseIsHeldWhileAnythingActs ends a leader whose work takes a while to stop: until then no other process can get
// the Lease.
func TestLeaseIsHeldWhileAnythingActs(t *testing.T) {
	t.Parallel()
	_, config := labtest.APIServer(t)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		lease, err := clients.CoordinationV1().Leases("default").Get(context.Background(), "acts", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return *lease.Spec.HolderIdentity
	}
	ctx, end := context.WithCancel(context.Background())
	running, settling := make(chan struct{}), make(chan struct{})
	settled := make(chan struct{})
	lease := Lease{Name: "acts", Namespace: "default", Identity: "tenon_a", Held: func(string, time.Time) {}, Settle: func() {
		close(settling)
		<-settled
	}}
	led := make(chan error, 1)
	go func() {
		led <- Lead(ctx, config, lease, zaptest.NewLogger(t), func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-running
	end()
	<-settling
	// Many times as long as client-go takes to release a Lease.
	for range 10 {
		if got := holder(); got != "tenon_a" {
			t.Fatalf("%q holds the Lease while its last holder still acts", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	close(settled)
	if err := <-led; !errors.Is(err, context.Canceled) {
		t.Errorf("leading ended with %v", err)
	}
	if got := holder(); got != "" {
		t.Errorf("%q holds the Lease after its holder has ended", got)
	}
}

// playedLock is a fake Lease with a holder.
type playedLock struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
}

func (l *playedLock) Identity() string { return "tenon_a" }

func (l *playedLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := l.record
	return &record, nil, nil
}

func (l *playedLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.record = record
	return nil
}

func TestOnlyItsOwnLeaseIsLetGo(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct{ holder, wants, left string }{
		"a holder lets its Lease go":                       {holder: "tenon_a", wants: "", left: ""},
		"one that slept does not let go what is another's": {holder: "karpenter_b", wants: "", left: "karpenter_b"},
		"a Lease that nobody has is taken":                 {holder: "", wants: "tenon_a", left: "tenon_a"},
		"one that has run out is taken":                    {holder: "karpenter_b", wants: "tenon_a", left: "tenon_a"},
	} {
		played := &playedLock{record: resourcelock.LeaderElectionRecord{HolderIdentity: test.holder}}
		lock := &ownLock{Interface: played, held: func(string, time.Time) {}}
		if _, _, err := lock.Get(context.Background()); err != nil {
			t.Fatal(err)
		}
		err := lock.Update(context.Background(), resourcelock.LeaderElectionRecord{HolderIdentity: test.wants})
		if refused := errors.Is(err, errNotOurs); refused != (test.left != test.wants) || played.record.HolderIdentity != test.left {
			t.Errorf("%s: %q holds it, want %q: %v", reason, played.record.HolderIdentity, test.left, err)
		}
	}
}
