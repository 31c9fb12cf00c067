package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"github.com/prometheus/client_golang/prometheus"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/workflows"
)

// Builds of Tenon are versions of a Temporal Worker Deployment that has the cluster's name. Temporal sends the cluster's
// tasks to the workers of one version, the current one. Two rules make upgrades and rollbacks safe without manual steps:
//
//   - The build that holds the Lease is the current version. Its leader polls, so the current version always has a poller.
//     The next holder of the Lease, newer or older, makes its own build current.
//   - Every other worker polls as tasks are sent: as a version while they are sent to a version, and without one while they
//     are sent to workers without one. So all of them do the right thing if the server has no Worker Deployments.
//
// Every workflow upgrades automatically: its next task runs on the current version. None is pinned to the version that
// started it. A pinned drain would need a worker of its version until it ends, which may be days, while a Deployment's
// rollout removes the old workers within seconds. The old workers would also have to act while another version holds the
// Lease. Changes of workflow code are marked with workflow.GetVersion instead.
//
// If the server refuses (it is too old, versions are switched off or have reached a limit, or permission is missing), the
// leader has tasks sent to workers without a version, tries again every routedEvery, and all builds share the queue.

const (
	// routedEvery is how often a worker checks where tasks go. routedAgain is how soon a leader tries again after it failed
	// to have them sent to its build.
	routedEvery, routedAgain = 10 * time.Second, time.Second
	// routedFor is how long Temporal may take to answer.
	routedFor = 20 * time.Second
)

// route is where Temporal sends the cluster's workflow tasks: to workers of a build of a Worker Deployment, or, when empty, to
// workers without a version.
type route struct{ deployment, build string }

// router is the part of Temporal that sends tasks to workers.
type router interface {
	// Where returns where tasks go.
	Where(ctx context.Context) (route, error)
	// Send routes tasks to the workers of a build of the cluster's deployment or, without a build, to workers without a
	// version.
	Send(ctx context.Context, build string) error
}

// polling is how a worker asks for tasks.
type polling int

const (
	// pollNot means that the worker does not know yet.
	pollNot polling = iota
	pollUnversioned
	pollVersioned
)

// versions tracks where tasks go, and routes them to this build while this replica leads.
type versions struct {
	router router
	mine   route
	gauge  prometheus.Gauge
	log    *zap.Logger

	// looking is held during a look, so that an old answer never replaces a newer one. It guards leading and said.
	looking sync.Mutex
	leading bool
	// said is the last problem that was logged.
	said string

	mu   sync.Mutex
	poll polling
	// changed is closed when poll changes.
	changed chan struct{}
}

// newVersions returns versions that have not checked yet.
func newVersions(router router, mine route, registry prometheus.Registerer, log *zap.Logger) (*versions, error) {
	v := &versions{router: router, mine: mine, log: log, changed: make(chan struct{}), gauge: prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "tenon", Name: "version_current", ConstLabels: prometheus.Labels{"build_id": mine.build},
		Help: "1 while Temporal sends the cluster's tasks to workers of this build; 0 while they go to another build, or to workers without a version."})}
	if err := registry.Register(v.gauge); err != nil {
		return nil, fmt.Errorf("register the metric of the version: %w", err)
	}
	return v, nil
}

// follow checks where tasks go every routedEvery until ctx ends.
func (v *versions) follow(ctx context.Context) error {
	for {
		v.look(ctx)
		if err := smithytime.SleepWithContext(ctx, routedEvery); err != nil {
			return err
		}
	}
}

// lead routes tasks to this build until ctx ends, when this replica stops being the leader.
func (v *versions) lead(ctx context.Context) error {
	v.setLeading(true)
	defer v.setLeading(false)
	for {
		next := routedEvery
		if !v.take(ctx) {
			next = routedAgain
		}
		if err := smithytime.SleepWithContext(ctx, next); err != nil {
			return err
		}
	}
}

func (v *versions) setLeading(leading bool) {
	v.looking.Lock()
	defer v.looking.Unlock()
	v.leading = leading
}

// look makes the worker poll as tasks are sent. While this replica leads, take decides that instead.
func (v *versions) look(ctx context.Context) {
	v.looking.Lock()
	defer v.looking.Unlock()
	if v.leading {
		return
	}
	ctx, stop := context.WithTimeout(ctx, routedFor)
	defer stop()
	now, err := v.router.Where(ctx)
	if err != nil {
		v.say(ctx, "it is not known to which version tasks go", err)
		return
	}
	v.said = ""
	v.arrived(now)
}

// take routes tasks to this build. It returns false if the leader has to try again soon.
func (v *versions) take(ctx context.Context) bool {
	v.looking.Lock()
	defer v.looking.Unlock()
	ctx, stop := context.WithTimeout(ctx, routedFor)
	defer stop()
	now, err := v.router.Where(ctx)
	if err != nil {
		v.say(ctx, "it is not known to which version tasks go", err)
		return false
	}
	if now == v.mine {
		v.said = ""
		v.arrived(now)
		return true
	}
	err = v.router.Send(ctx, v.mine.build)
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		v.said = ""
		v.log.Info("this build is the current version", zap.String("build", v.mine.build), zap.String("before", now.build))
		v.arrived(v.mine)
		return true
	case errors.As(err, &missing):
		v.say(ctx, "Temporal wants to see a worker of this build before it becomes the current version", err)
		v.publish(pollVersioned)
		return false
	case !refused(err):
		v.say(ctx, "this build could not become the current version yet", err)
		v.first(now)
		return false
	}
	if now != (route{}) {
		if back := v.router.Send(ctx, ""); back != nil {
			v.say(ctx, "tasks go to another version, and Temporal does not let this build change it", errors.Join(err, back))
			v.first(now)
			return false
		}
	}
	v.say(ctx, "Temporal refuses versions of workers: all builds share the task queue", err)
	v.arrived(route{})
	return true
}

// refused reports whether Temporal rejects a version of this build, so that asking again does not help.
func refused(err error) bool {
	var (
		old      *serviceerror.Unimplemented
		off      *serviceerror.PermissionDenied
		rejected *serviceerror.InvalidArgument
		limited  *serviceerror.ResourceExhausted
	)
	return errors.As(err, &old) || errors.As(err, &off) || errors.As(err, &rejected) ||
		errors.As(err, &limited) && limited.Cause == enumspb.RESOURCE_EXHAUSTED_CAUSE_WORKER_DEPLOYMENT_LIMITS
}

// say logs a problem once.
func (v *versions) say(ctx context.Context, what string, err error) {
	text := what + ": " + err.Error()
	if errors.Is(ctx.Err(), context.Canceled) || text == v.said {
		return
	}
	v.said = text
	v.log.Warn(what, zap.String("deployment", v.mine.deployment), zap.String("build", v.mine.build), zap.Error(err))
}

// arrived records where tasks go.
func (v *versions) arrived(now route) {
	current := 0.0
	if now == v.mine {
		current = 1
	}
	v.gauge.Set(current)
	if now == (route{}) {
		v.publish(pollUnversioned)
	} else {
		v.publish(pollVersioned)
	}
}

// first calls arrived if the worker does not know yet how to poll. A worker that knows may know better: Temporal shows where
// tasks go only after the first poll of a version.
func (v *versions) first(now route) {
	v.mu.Lock()
	poll := v.poll
	v.mu.Unlock()
	if poll == pollNot {
		v.arrived(now)
	}
}

func (v *versions) publish(poll polling) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.poll == poll {
		return
	}
	v.poll = poll
	close(v.changed)
	v.changed = make(chan struct{})
}

// during runs a worker until ctx ends, and restarts it whenever it has to poll in another way.
func (v *versions) during(ctx context.Context, work func(ctx context.Context, as sdk.DeploymentOptions) error) error {
	for {
		v.mu.Lock()
		poll, changed := v.poll, v.changed
		v.mu.Unlock()
		if poll == pollNot {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		working, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- work(working, v.options(poll)) }()
		select {
		case err := <-ended:
			stop()
			return err
		case <-changed:
			stop()
			<-ended
		}
	}
}

// options returns the SDK's options for a way of polling.
func (v *versions) options(poll polling) sdk.DeploymentOptions {
	if poll == pollUnversioned {
		return sdk.DeploymentOptions{}
	}
	return sdk.DeploymentOptions{
		UseVersioning:             true,
		Version:                   sdk.WorkerDeploymentVersion{DeploymentName: v.mine.deployment, BuildID: v.mine.build},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
}

// temporalRouter is a Temporal server that sends a cluster's tasks.
type temporalRouter struct {
	client  client.Client
	cluster workflows.Cluster
}

// Where implements router. It asks the task queue, which decides, and not the deployment's own record. That costs no action.
func (t temporalRouter) Where(ctx context.Context) (route, error) {
	queue, err := t.client.DescribeTaskQueue(ctx, t.cluster.TaskQueue(), enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return route{}, fmt.Errorf("describe task queue %s: %w", t.cluster.TaskQueue(), err)
	}
	current := queue.GetVersioningInfo().GetCurrentDeploymentVersion()
	return route{current.GetDeploymentName(), current.GetBuildId()}, nil
}

// Send implements router.
func (t temporalRouter) Send(ctx context.Context, build string) error {
	deployment := t.client.WorkerDeploymentClient().GetHandle(t.cluster.Deployment())
	// The token keeps a slow leader from undoing what its successor has done.
	var token []byte
	now, err := deployment.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		token = now.ConflictToken
	case !errors.As(err, &missing):
		return fmt.Errorf("describe worker deployment %s: %w", t.cluster.Deployment(), err)
	}
	_, err = deployment.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build, ConflictToken: token,
		// The leader polls the cluster's only task queue as soon as its build is current.
		AllowNoPollers: true, IgnoreMissingTaskQueues: true})
	if err != nil {
		return fmt.Errorf("set the current version of worker deployment %s to %q: %w", t.cluster.Deployment(), build, err)
	}
	return nil
}
