package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
)

// fakeRouter sends tasks where it was last told to.
type fakeRouter struct {
	mu    sync.Mutex
	now   route
	asked []string
	// refuses returns the error for a request to route tasks to a build. away is the error for every request.
	refuses func(build string) error
	away    error
}

func (f *fakeRouter) Where(context.Context) (route, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, f.away
}

func (f *fakeRouter) Send(_ context.Context, build string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, build)
	if f.away != nil {
		return f.away
	}
	if f.refuses != nil {
		if err := f.refuses(build); err != nil {
			return err
		}
	}
	if f.now = (route{}); build != "" {
		f.now = route{"blue", build}
	}
	return nil
}

func (f *fakeRouter) set(change func(*fakeRouter)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// replica is a worker of one build that shares a router with others.
type replica struct {
	versions *versions
	registry *prometheus.Registry
	// polls is how it polls: "not", "unversioned", or its build.
	polls   string
	demote  context.CancelFunc
	demoted chan error
}

// newReplica starts a replica of a build that follows.
func newReplica(t *testing.T, ctx context.Context, router router, build string) *replica {
	r := &replica{polls: "not", registry: prometheus.NewRegistry()}
	var err error
	if r.versions, err = newVersions(router, route{"blue", build}, r.registry, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	go func() { _ = r.versions.follow(ctx) }()
	go func() {
		_ = r.versions.during(ctx, func(ctx context.Context, as sdk.DeploymentOptions) error {
			r.polls = "unversioned"
			if as.UseVersioning {
				r.polls = as.Version.BuildID
			}
			<-ctx.Done()
			r.polls = "not"
			return ctx.Err()
		})
	}()
	return r
}

// lead makes the replica lead until it steps down.
func (r *replica) lead(ctx context.Context) {
	leading, demote := context.WithCancel(ctx)
	r.demote, r.demoted = demote, make(chan error, 1)
	go func() { r.demoted <- r.versions.lead(leading) }()
}

func (r *replica) stepDown() {
	r.demote()
	<-r.demoted
}

// current returns the value of the metric.
func (r *replica) current(t *testing.T) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// TestTheLeadersBuildIsCurrent rolls a build out and back, starting from workers without versions.
func TestTheLeadersBuildIsCurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		router := &fakeRouter{}
		old, young := newReplica(t, ctx, router, "1"), newReplica(t, ctx, router, "2")
		check := func(when string, after time.Duration, want route, polls ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if diff := cmp.Diff(append([]string{want.build}, polls...), []string{router.now.build, old.polls, young.polls}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
			for _, r := range []*replica{old, young} {
				if is := r.current(t) == 1; is != (want.build == r.versions.mine.build) && after >= 2*routedEvery {
					t.Errorf("%s: the metric of build %s says %t", when, r.versions.mine.build, is)
				}
			}
		}
		check("nobody leads: tasks go to workers without a version, which wait for the Lease", 0, route{}, "unversioned", "unversioned")
		old.lead(ctx)
		check("the leader has taken over at once", 0, route{"blue", "1"}, "1", "unversioned")
		check("the others have seen it", 2*routedEvery, route{"blue", "1"}, "1", "2")
		old.stepDown()
		young.lead(ctx)
		check("a roll-out", 0, route{"blue", "2"}, "1", "2")
		check("it has settled", 2*routedEvery, route{"blue", "2"}, "1", "2")
		router.set(func(f *fakeRouter) { f.now = route{"blue", "1"} })
		check("a leader of before was slow, and is put right", 2*routedEvery, route{"blue", "2"}, "1", "2")
		router.set(func(f *fakeRouter) { f.now = route{"green", "2"} })
		check("somebody has given the queue to another deployment", 2*routedEvery, route{"blue", "2"}, "1", "2")
		young.stepDown()
		old.lead(ctx)
		check("a rollback", 0, route{"blue", "1"}, "1", "2")
		old.stepDown()
		check("nobody leads, and what was said stays", 2*routedEvery, route{"blue", "1"}, "1", "2")
		if want := []string{"1", "2", "2", "2", "1"}; !slices.Equal(router.asked, want) {
			t.Errorf("asked for %v, want %v: a cluster at rest asks for nothing", router.asked, want)
		}
		stop()
		synctest.Wait()
	})
}

// TestVersionsWithoutTheirServer makes Temporal refuse versions, or be away: no worker may wait for tasks that go elsewhere.
func TestVersionsWithoutTheirServer(t *testing.T) {
	t.Parallel()
	limit := &serviceerror.ResourceExhausted{Cause: enumspb.RESOURCE_EXHAUSTED_CAUSE_WORKER_DEPLOYMENT_LIMITS, Message: "reached maximum deployments in namespace (100)"}
	busy := &serviceerror.ResourceExhausted{Cause: enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW}
	for name, test := range map[string]struct {
		reason string
		now    route
		// err answers requests to route tasks to a build; all also answers requests to route them to workers without a
		// version.
		err, all error
		polls    string
		want     route
		// least and most limit how often a build is asked for within a minute.
		least, most int
	}{
		"Old":          {reason: "the server is too old", err: fmt.Errorf("describe: %w", serviceerror.NewUnimplemented("unknown method")), polls: "unversioned", least: 5, most: 7},
		"Off":          {reason: "versions are switched off", err: serviceerror.NewPermissionDenied("disabled on this namespace", ""), polls: "unversioned", least: 5, most: 7},
		"Limit":        {reason: "there are too many clusters", err: limit, polls: "unversioned", least: 5, most: 7},
		"LimitLater":   {reason: "there are too many versions, and tasks go to another build, which is gone", now: route{"blue", "1"}, err: limit, polls: "unversioned", least: 5, most: 7},
		"Stuck":        {reason: "permission was taken away while tasks go to another build: this one is ready for them", now: route{"blue", "1"}, err: serviceerror.NewPermissionDenied("", ""), all: serviceerror.NewPermissionDenied("", ""), polls: "2", want: route{"blue", "1"}, least: 30, most: 61},
		"NotSeenYet":   {reason: "the server wants to see a worker of the version first", err: serviceerror.NewNotFound("no version 2"), polls: "2", least: 30, most: 61},
		"Busy":         {reason: "the server has to do too much at once", err: busy, polls: "unversioned", least: 30, most: 61},
		"Precondition": {reason: "somebody else was faster", now: route{"blue", "1"}, err: serviceerror.NewFailedPrecondition("conflict token mismatch"), polls: "2", want: route{"blue", "1"}, least: 30, most: 61},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				router := &fakeRouter{now: test.now, refuses: func(build string) error {
					if build == "" {
						return test.all
					}
					return test.err
				}}
				r := newReplica(t, ctx, router, "2")
				r.lead(ctx)
				time.Sleep(time.Minute - time.Millisecond)
				synctest.Wait()
				asked := 0
				router.set(func(f *fakeRouter) {
					for _, build := range f.asked {
						if build != "" {
							asked++
						}
					}
				})
				if r.polls != test.polls || router.now != test.want || asked < test.least || asked > test.most {
					t.Errorf("%s: it polls %q, tasks go to %+v, and it asked %d times", test.reason, r.polls, router.now, asked)
				}
				router.set(func(f *fakeRouter) { f.refuses = nil })
				time.Sleep(routedEvery)
				synctest.Wait()
				if r.polls != "2" || router.now.build != "2" {
					t.Errorf("%s: once Temporal agrees it polls %q and tasks go to %+v", test.reason, r.polls, router.now)
				}
				stop()
				synctest.Wait()
			})
		})
	}
}

// TestVersionsWhileTemporalIsAway checks that the last known state is kept.
func TestVersionsWhileTemporalIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		router := &fakeRouter{away: serviceerror.NewUnavailable("connection refused")}
		r := newReplica(t, ctx, router, "2")
		r.lead(ctx)
		for _, step := range []struct {
			reason, polls string
			away          error
		}{
			{reason: "it starts while Temporal is away", polls: "not", away: router.away},
			{reason: "it answers", polls: "2"},
			{reason: "it is away again", polls: "2", away: errors.New("connection reset")},
		} {
			router.set(func(f *fakeRouter) { f.away = step.away })
			time.Sleep(3 * routedEvery)
			synctest.Wait()
			if r.polls != step.polls {
				t.Errorf("%s: it polls %q, want %q", step.reason, r.polls, step.polls)
			}
		}
		stop()
		synctest.Wait()
	})
}

// TestWorkThatFailsEndsTheWorker checks that a failure is not mistaken for a change of version.
func TestWorkThatFailsEndsTheWorker(t *testing.T) {
	t.Parallel()
	v, err := newVersions(&fakeRouter{}, route{"blue", "2"}, prometheus.NewRegistry(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	v.look(t.Context())
	broken := errors.New("the namespace is gone")
	if err := v.during(t.Context(), func(context.Context, sdk.DeploymentOptions) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
}
