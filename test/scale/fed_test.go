package scale_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/activities"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/worker"
	"github.com/tenon-sh/tenon/workflows"
)

// fedVariable makes the test binary act as the fed worker, so that its memory can be measured alone. Its value is the
// configuration.
const fedVariable = "TENON_SCALE_FED"

// fedWorker holds the addresses of the servers that feed a worker, and its memory limit.
type fedWorker struct {
	APIServer, Temporal, EC2 string
	MemoryLimit              string
}

// fedFigures are a worker's needs for a cluster of this size.
type fedFigures struct {
	Nodes       int    `json:"nodes"`
	Pods        int    `json:"pods"`
	MemoryLimit string `json:"memoryLimit"`
	// SyncSeconds is the time until the mirror was complete, WorkflowSeconds until every workflow had been read.
	SyncSeconds     float64 `json:"syncSeconds"`
	WorkflowSeconds float64 `json:"workflowSeconds"`
	// SweepSeconds is the time of the slowest sweep; SweepAPIServer, SweepTemporal and SweepEC2 are the most data
	// transferred in one, in MiB.
	SweepSeconds     float64 `json:"sweepSeconds"`
	SweepAPIServer   float64 `json:"sweepAPIServerMiB"`
	SweepTemporal    float64 `json:"sweepTemporalMiB"`
	SweepEC2         float64 `json:"sweepEC2MiB"`
	EvaluateSeconds  float64 `json:"evaluateSeconds"`
	PlanSeconds      float64 `json:"planSeconds"`
	PeakMiB          float64 `json:"peakMiB"`
	PeakMirrorMiB    float64 `json:"peakMirrorMiB"`
	PeakWorkflowsMiB float64 `json:"peakWorkflowsMiB"`
}

// feed starts a worker as its own process, feeds it a cluster and makes it do what touches all of it.
func feed(t testing.TB, nodes, pods int, limit string) fedFigures {
	t.Helper()
	figures := fedFigures{Nodes: nodes, Pods: pods, MemoryLimit: limit}
	f, sim := newFeeding(t, nodes, pods)
	resources := f.resources()
	api := newAPIServer(resources)
	listener := httptest.NewServer(api)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	var inputs []workflows.NodeClaimInput
	for i := range nodes {
		claim := f.claim(i, 0)
		inputs = append(inputs, workflows.NodeClaimInput{Cluster: fedCluster, Claim: workflows.ClaimRef{Name: claim.GetName(), UID: string(claim.GetUID())}, NodePool: "default", Group: "group",
			Instance:   workflows.Instance{ID: f.instances[i].ID, ProviderID: f.providerID(i), InstanceType: fedType, Zone: f.instances[i].Zone, CapacityType: "on-demand"},
			DrainTells: true})
	}
	front, address := newFrontend(t, inputs)
	meters := map[string]*world.Wire{"api": world.NewWire(t, strings.TrimPrefix(listener.URL, "http://")), "temporal": world.NewWire(t, address), "ec2": world.NewWire(t, strings.TrimPrefix(sim.URL(), "http://"))}
	child := startFed(t, fedWorker{APIServer: "http://" + meters["api"].Address(), Temporal: meters["temporal"].Address(), EC2: "http://" + meters["ec2"].Address(), MemoryLimit: limit})

	began := time.Now()
	child.await(t, "synchronized")
	figures.SyncSeconds = time.Since(began).Seconds()
	for range 3 {
		api.churn()
	}
	figures.PeakMirrorMiB = peakOf(t, child.cmd.Process.Pid)
	began = time.Now()
	child.tell(t, "poll")
	for {
		answered, failed := front.served()
		if failed != "" {
			t.Fatalf("a workflow task failed: %s", failed)
		}
		if answered == nodes {
			break
		}
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("%d of %d workflows were read", answered, nodes)
		}
		time.Sleep(50 * time.Millisecond)
	}
	figures.WorkflowSeconds = time.Since(began).Seconds()
	figures.PeakWorkflowsMiB = peakOf(t, child.cmd.Process.Pid)

	for range 3 {
		before := map[string]int64{}
		for name, m := range meters {
			before[name] = m.Bytes()
		}
		var swept workflows.SweepResult
		figures.SweepSeconds = max(figures.SweepSeconds, front.do(t, workflows.SweepActivity.Name, workflows.SweepInput{}, &swept).Seconds())
		if swept.Instances != nodes || swept.Claims != nodes || len(swept.Terminated)+len(swept.Adopted)+len(swept.Lost)+len(swept.Ended)+len(swept.Failed)+len(swept.Nodes) > 0 || swept.Stopped != "" {
			t.Fatalf("a sweep of a cluster in which all is well: %+v", swept)
		}
		passed := func(name string) float64 { return float64(meters[name].Bytes()-before[name]) / (1 << 20) }
		figures.SweepAPIServer = max(figures.SweepAPIServer, passed("api"))
		figures.SweepTemporal = max(figures.SweepTemporal, passed("temporal"))
		figures.SweepEC2 = max(figures.SweepEC2, passed("ec2"))
	}
	var found workflows.Evaluation
	figures.EvaluateSeconds = front.do(t, workflows.EvaluateActivity.Name, workflows.EvaluateInput{}, &found).Seconds()
	var planned workflows.PlanResult
	figures.PlanSeconds = front.do(t, workflows.PlanActivity.Name, workflows.PlanInput{Plan: "plan"}, &planned).Seconds()
	if len(planned.Groups) > 0 {
		t.Fatalf("nodes were planned for pods that none can take: %+v", planned)
	}
	figures.PeakMiB = peakOf(t, child.cmd.Process.Pid)
	t.Logf("%s; %s", found.Note, planned.Note)
	return figures
}

// fedProcess is the fed worker as its parent process sees it.
type fedProcess struct {
	cmd   *exec.Cmd
	lines chan string
	write func(string) error
}

func startFed(t testing.TB, how fedWorker) *fedProcess {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(how)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable)
	cmd.Env = append(os.Environ(), fedVariable+"="+string(said))
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, world.DieTogether()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &fedProcess{cmd: cmd, lines: make(chan string), write: func(line string) error { _, err := fmt.Fprintln(input, line); return err }}
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			p.lines <- lines.Text()
		}
		close(p.lines)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range p.lines {
		}
		_ = cmd.Wait()
	})
	return p
}

func (p *fedProcess) await(t testing.TB, want string) {
	t.Helper()
	select {
	case got := <-p.lines:
		if got != want {
			t.Fatalf("the worker says %q, want %q", got, want)
		}
	case <-time.After(5 * time.Minute):
		t.Fatalf("the worker does not say that it has %s", want)
	}
}

func (p *fedProcess) tell(t testing.TB, line string) {
	t.Helper()
	if err := p.write(line); err != nil {
		t.Fatal(err)
	}
}

// beFed is the fed worker: a mirror, the workflows and the activities, connected as tenon worker connects them, without what
// writes to an API server.
func beFed(said string) error {
	var how fedWorker
	if err := json.Unmarshal([]byte(said), &how); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	log := zap.NewNop()
	settings := worker.DefaultConfig()
	if err := settings.MemoryLimit.Set(how.MemoryLimit); err != nil {
		return err
	}
	debug.SetGCPercent(50)
	settings.LimitMemory(log)
	api := &rest.Config{Host: how.APIServer}
	mirror, err := cluster.NewMirror(api, cluster.Options{Kind: nodeclass.Kind(), Log: log})
	if err != nil {
		return err
	}
	direct, err := kube.NewWithWatch(api, kube.Options{Scheme: worker.Scheme()})
	if err != nil {
		return err
	}
	for name, value := range awsEnvironment(how.EC2) {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	provider, err := aws.New(ctx, aws.Options{Cluster: fedCluster})
	if err != nil {
		return err
	}
	connection, err := client.Dial(client.Options{HostPort: how.Temporal, Logger: temporal.NewLogger(log)})
	if err != nil {
		return err
	}
	sweeps, err := activities.NewSweepMetrics(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	acts := activities.New(activities.Config{Cluster: fedCluster, Kube: direct, Mirror: mirror, Cloud: provider, Temporal: connection, Events: &record.FakeRecorder{}, Log: log,
		BatchIdle: 100 * time.Millisecond, BatchMost: time.Second, MinValues: plan.MinValuesStrict, Preferences: plan.PreferencesRespect, Packing: plan.PackingSpread,
		SweepMost: activities.SweepMost, SweepMetrics: sweeps})
	failed := make(chan error, 2)
	go func() { failed <- mirror.Run(ctx) }()
	if err := mirror.WaitSynced(ctx); err != nil {
		return err
	}
	fmt.Println("synchronized")
	input := bufio.NewScanner(os.Stdin)
	if !input.Scan() {
		return errors.New("nobody is there")
	}
	polling := sdk.New(connection, workflows.Cluster(fedCluster).TaskQueue(), sdk.Options{OnFatalError: func(err error) { failed <- err }})
	workflows.Register(polling)
	workflows.RegisterActivities(polling, acts)
	if err := polling.Start(); err != nil {
		return err
	}
	return <-failed
}
