package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
	"github.com/tenon-sh/tenon/deploy"
)

const (
	testCluster = "blue"
	testAccount = "123456789012"
	fisRole     = "arn:aws:iam::123456789012:role/tenon-live-fis"
	workerKey   = "worker"
)

// laboratory is a simulated account with an API server and a clock that advances when a run waits.
type laboratory struct {
	t     *testing.T
	sim   *ec2sim.Server
	nodes *fake.Clientset
	url   string // what the run calls; a test may put a proxy before the simulator
	out   bytes.Buffer
	dir   string
	// slept is called after each wait of a run; interrupt interrupts the run as Ctrl-C does.
	slept     func()
	interrupt func()

	mu  sync.Mutex
	now time.Time
}

func (l *laboratory) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *laboratory) advance(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

// newLaboratory grants the permissions that --policy prints, and no others.
func newLaboratory(t *testing.T, run string) *laboratory {
	t.Helper()
	l := &laboratory{t: t, nodes: fake.NewClientset(), dir: t.TempDir(), now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	l.playKubelet()
	texts, err := policies(settings{run: run, region: "us-east-1", account: testAccount, cluster: testCluster, fisRole: fisRole, queue: "tenon-live"})
	if err != nil {
		t.Fatal(err)
	}
	documents, err := policy.ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	l.sim, err = ec2sim.New(ec2sim.Options{
		Cluster: testCluster, Now: l.Now, Queues: []string{"tenon-live"}, Kubernetes: l.nodes,
		Policies:        ec2sim.Policies{workerKey: documents},
		ClusterEndpoint: "https://cluster.example", ClusterCA: []byte("certificate"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.sim.Close(); err != nil {
			t.Errorf("close the simulator: %v", err)
		}
	})
	l.url = l.sim.URL()
	return l
}

// playKubelet makes nodes Ready and pods Running as soon as they are created, and lets a budget refuse each eviction once.
func (l *laboratory) playKubelet() {
	refused := map[string]bool{}
	l.nodes.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		node := action.(clienttesting.CreateAction).GetObject().(*corev1.Node)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return false, nil, nil
	})
	l.nodes.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateAction)
		if create.GetSubresource() != "eviction" {
			create.GetObject().(*corev1.Pod).Status.Phase = corev1.PodRunning
			return false, nil, nil
		}
		name := create.GetObject().(*policyv1.Eviction).Name
		if !refused[name] {
			refused[name] = true
			return true, nil, apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 1)
		}
		return true, nil, l.nodes.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), create.GetNamespace(), name)
	})
}

func (l *laboratory) load(key string) []func(*config.LoadOptions) error {
	return []func(*config.LoadOptions) error{
		config.WithBaseEndpoint(l.url), config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(key, "secret", "")),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
	}
}

// run calls the command as a shell does.
func (l *laboratory) run(args ...string) (string, error) {
	l.t.Helper()
	l.out.Reset()
	ctx, interrupt := context.WithCancel(l.t.Context())
	defer interrupt()
	l.interrupt = interrupt
	command := newCommand(world{
		out: &l.out, now: l.Now, load: l.load(workerKey),
		sleep: func(ctx context.Context, d time.Duration) error {
			l.advance(d)
			time.Sleep(5 * time.Millisecond) // the simulator's kubelets work in real time
			if l.slept != nil {
				l.slept()
			}
			return ctx.Err()
		},
		connect: func(string) (kubernetes.Interface, error) { return l.nodes, nil },
	})
	command.SetArgs(args)
	command.SetOut(&l.out)
	err := command.ExecuteContext(ctx)
	return l.out.String(), err
}

// admin returns the configuration of another user with all permissions.
func (l *laboratory) admin() aws.Config {
	l.t.Helper()
	cfg, err := config.LoadDefaultConfig(l.t.Context(), append(l.load("admin"), config.WithRegion("us-east-1"))...)
	if err != nil {
		l.t.Fatal(err)
	}
	return cfg
}

// foreign launches an instance of somebody else, with tags that are nearly the run's.
func (l *laboratory) foreign(tags map[string]string) string {
	l.t.Helper()
	api := ec2.NewFromConfig(l.admin())
	images, err := api.DescribeImages(l.t.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil {
		l.t.Fatal(err)
	}
	subnets, err := api.DescribeSubnets(l.t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		l.t.Fatal(err)
	}
	in := &ec2.RunInstancesInput{
		SubnetId: subnets.Subnets[0].SubnetId, ImageId: images.Images[0].ImageId, InstanceType: types.InstanceTypeM5Large,
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance}},
	}
	for key, value := range tags {
		in.TagSpecifications[0].Tags = append(in.TagSpecifications[0].Tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	out, err := api.RunInstances(l.t.Context(), in)
	if err != nil {
		l.t.Fatal(err)
	}
	return aws.ToString(out.Instances[0].InstanceId)
}

func (l *laboratory) alive() []string {
	alive := []string{}
	for _, i := range l.sim.Instances() {
		if i.EndedAt == nil {
			alive = append(alive, i.ID)
		}
	}
	return alive
}

// left counts the launch templates and instance profiles of the account.
func (l *laboratory) left() (templates, profiles int) {
	l.t.Helper()
	made, err := ec2.NewFromConfig(l.admin()).DescribeLaunchTemplates(l.t.Context(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		l.t.Fatal(err)
	}
	list, err := iam.NewFromConfig(l.admin()).ListInstanceProfiles(l.t.Context(), &iam.ListInstanceProfilesInput{})
	if err != nil {
		l.t.Fatal(err)
	}
	return len(made.LaunchTemplates), len(list.InstanceProfiles)
}

func (l *laboratory) file(name string) string { return filepath.Join(l.dir, name) }

// classFile writes the example class of package deploy and returns its path.
func (l *laboratory) classFile() string {
	l.t.Helper()
	data, err := deploy.DefaultNodeClass(testCluster)
	if err != nil {
		l.t.Fatal(err)
	}
	file := l.file("class.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return file
}

func (l *laboratory) args(further ...string) []string {
	return append([]string{
		"--really-spend-money", "--tag", "tenon-live=first", "--region", "us-east-1", "--cluster", testCluster, "--class", l.classFile(),
	}, further...)
}

// everything returns the flags with which no step is left out.
func (l *laboratory) everything() []string {
	return l.args("--kubeconfig", "fake", "--queue", "tenon-live", "--fis-role", fisRole, "--state", l.file("live.json"), "--record", l.file("live.jsonl"))
}

// verdicts reads the verdict of each step out of what was printed.
func verdicts(out string) map[string]string {
	found := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		if match := resultLine.FindStringSubmatch(line); match != nil {
			found[strings.TrimSpace(match[1])] = match[2]
		}
	}
	return found
}

var resultLine = regexp.MustCompile(`^\d\d:\d\d:\d\d  (.{33}) (passed|FAILED|observed|not run) `)

func TestWholeRun(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	foreign := l.foreign(map[string]string{tagKey: "second", "kubernetes.io/cluster/" + testCluster: "owned", "karpenter.k8s.aws/ec2nodeclass": "default"})
	out, err := l.run(l.everything()...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
	got := verdicts(out)
	want := map[string]string{"replay after the end": "observed", "replay when there is room": "observed", "cleanup": "passed"}
	for _, s := range steps() {
		if want[s.name] == "" {
			want[s.name] = "passed"
		}
	}
	for name, verdict := range want {
		if got[name] != verdict {
			t.Errorf("%s: %q, want %q", name, got[name], verdict)
		}
	}
	if alive := l.alive(); !slices.Equal(alive, []string{foreign}) {
		t.Errorf("alive are %v, want somebody else's %s alone", alive, foreign)
	}
	if templates, profiles := l.left(); templates == 0 || profiles != 1 {
		t.Errorf("%d launch templates and %d profiles for --resume", templates, profiles)
	}

	if out, err := l.run("--really-spend-money", "--resume", l.file("live.json")); err == nil || !strings.Contains(err.Error(), "2026-11-26T13:") {
		t.Errorf("a run is resumed at once: %v\n%s", err, out)
	}
	l.advance(again)
	out, err = l.run("--really-spend-money", "--resume", l.file("live.json"), "--record", l.file("later.jsonl"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
	got = verdicts(out)
	for _, s := range laterSteps()[1:] {
		if got[s.name] != "observed" {
			t.Errorf("%s: %q, want observed", s.name, got[s.name])
		}
	}
	if !strings.Contains(out, "1 instances launched anew") {
		t.Error("the simulator forgets tokens after a day, and nothing was launched anew")
	}
	if alive := l.alive(); !slices.Equal(alive, []string{foreign}) {
		t.Errorf("alive are %v, want somebody else's %s alone", alive, foreign)
	}
	if templates, profiles := l.left(); templates != 0 || profiles != 0 {
		t.Errorf("%d launch templates and %d profiles are left", templates, profiles)
	}
}

func TestNothingWithoutTheFlag(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	out, err := l.run("--tag", "tenon-live=first", "--region", "us-east-1", "--cluster", testCluster, "--class", l.classFile())
	if err == nil || !strings.Contains(out, stepOnDemand) || !strings.Contains(out, "At most $") {
		t.Errorf("without the flag: %v\n%s", err, out)
	}
	if out, err := l.run("--plan"); err != nil || !strings.Contains(out, stepOnDemand) {
		t.Errorf("--plan: %v\n%s", err, out)
	}
	if counts := l.sim.CallCounts(); len(counts) > 0 {
		t.Errorf("calls were made: %v", counts)
	}
}

func TestFlagsThatCannotWork(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	for reason, args := range map[string][]string{
		"another tag":             {"--tag", "Name=first"},
		"a name that is no label": {"--tag", "tenon-live=First_"},
		"no cluster":              {"--cluster", ""},
		"no region":               {"--region", ""},
		"no class":                {"--class", ""},
	} {
		if out, err := l.run(l.args(args...)...); err == nil {
			t.Errorf("%s: accepted\n%s", reason, out)
		}
	}
	if counts := l.sim.CallCounts(); len(counts) > 0 {
		t.Errorf("calls were made: %v", counts)
	}
}

func TestTooDear(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	out, err := l.run(l.args("--max-dollars", "0.5")...)
	if err == nil || verdicts(out)["preflight"] != "FAILED" || !strings.Contains(out, "--max-dollars") {
		t.Errorf("%v\n%s", err, out)
	}
	if made := len(l.sim.Instances()); made > 0 {
		t.Errorf("%d instances were launched", made)
	}
	if templates, profiles := l.left(); templates != 0 || profiles != 0 {
		t.Errorf("%d launch templates and %d profiles are left", templates, profiles)
	}
}

// TestWithoutAnything: a step that lacks something is not run, and says so; it never counts as passed.
func TestWithoutAnything(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	out, err := l.run(l.args()...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := verdicts(out)
	for _, name := range []string{"on-demand node joins", "spot node joins", "interruption by FIS"} {
		if got[name] != "not run" {
			t.Errorf("%s: %q, want not run\n%s", name, got[name], out)
		}
	}
	if templates, profiles := l.left(); templates != 0 || profiles != 0 {
		t.Errorf("without --state %d launch templates and %d profiles are left", templates, profiles)
	}
}

// TestInFlightRefused: EC2 may refuse a request that arrives while the first one is in flight. One instance is launched
// nevertheless.
func TestInFlightRefused(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	if err := l.sim.SetFaults(ec2sim.Faults{
		InFlight: "RequestInProgress", Slow: []ec2sim.ReplyFault{{Action: "CreateFleet", Delay: ec2sim.Duration(50 * time.Millisecond)}},
	}); err != nil {
		t.Fatal(err)
	}
	out, err := l.run(l.args()...)
	if err != nil || verdicts(out)[stepInFlight] != "passed" || !strings.Contains(out, "RequestInProgress") {
		t.Errorf("%v\n%s", err, out)
	}
}

// forgetful puts a proxy before the simulator that acts like an EC2 without client tokens.
func forgetful(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	requests := 0
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if r.In.Method != http.MethodPost || r.In.Header.Get("X-Amz-Target") != "" {
			return
		}
		body, err := readAll(r.In)
		if err != nil {
			t.Error(err)
		}
		if form, err := url.ParseQuery(body); err == nil && form.Get("Action") == "CreateFleet" && form.Get("ClientToken") != "" {
			mu.Lock()
			requests++
			form.Set("ClientToken", fmt.Sprintf("%s-%d", form.Get("ClientToken"), requests))
			mu.Unlock()
			body = form.Encode()
		}
		r.Out.Body, r.Out.ContentLength = readCloser(body), int64(len(body))
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// TestAnEC2WithoutTokensIsNoticed shows that the replays can fail, and that a failed run leaves nothing.
func TestAnEC2WithoutTokensIsNoticed(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	l.url = forgetful(t, l.sim.URL())
	out, err := l.run(l.args()...)
	if err == nil {
		t.Fatalf("the run passed\n%s", out)
	}
	got := verdicts(out)
	for _, name := range []string{"replay after success", "token with another request", stepInFlight} {
		if got[name] != "FAILED" {
			t.Errorf("%s: %q, want FAILED", name, got[name])
		}
	}
	if got["cleanup"] != "passed" || len(l.alive()) > 0 {
		t.Errorf("cleanup: %q, alive are %v\n%s", got["cleanup"], l.alive(), out)
	}
}

// TestInterruptedRun: EC2 does not list yet what was launched just before Ctrl-C, and it is terminated nevertheless.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	if err := l.sim.SetFaults(ec2sim.Faults{DescribeLag: ec2sim.Duration(15 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	l.slept = func() {
		if len(l.alive()) > 0 {
			l.interrupt()
		}
	}
	out, err := l.run(l.args()...)
	got := verdicts(out)
	if err == nil || got[stepOnDemand] != "FAILED" || got[stepSpot] != "not run" || got["cleanup"] != "passed" {
		t.Errorf("%v\n%s", err, out)
	}
	if made := len(l.sim.Instances()); made != 1 || len(l.alive()) > 0 {
		t.Errorf("%d instances were launched, and alive are %v\n%s", made, l.alive(), out)
	}
}

// TestCleanupOnly removes what carries the tag with the run's name, whatever else it looks like, and nothing else.
func TestCleanupOnly(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "first")
	own := map[string]string{"kubernetes.io/cluster/" + testCluster: "owned", "karpenter.k8s.aws/ec2nodeclass": "tenon-live-first"}
	ours := l.foreign(map[string]string{tagKey: "first", "kubernetes.io/cluster/" + testCluster: "owned", "karpenter.k8s.aws/ec2nodeclass": "tenon-live-first"})
	theirs := []string{l.foreign(own), l.foreign(map[string]string{tagKey: "first-2"}), l.foreign(map[string]string{"Name": "first"})}
	theirReservation, err := l.sim.Reserve(ec2sim.Reservation{Type: "t3.medium", Zone: "us-east-1a", Count: 1, Tags: map[string]string{tagKey: "second"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.sim.Reserve(ec2sim.Reservation{Type: "t3.medium", Zone: "us-east-1a", Count: 1, Tags: map[string]string{tagKey: "first"}}); err != nil {
		t.Fatal(err)
	}
	out, err := l.run("--cleanup-only", "--tag", "tenon-live=first", "--region", "us-east-1", "--cluster", testCluster)
	if err != nil || !strings.Contains(out, "2 things removed, nothing left") {
		t.Fatalf("%v\n%s", err, out)
	}
	slices.Sort(theirs)
	if alive := l.alive(); !slices.Equal(alive, theirs) || slices.Contains(alive, ours) {
		t.Errorf("alive are %v, want %v", alive, theirs)
	}
	reservations, err := ec2.NewFromConfig(l.admin()).DescribeCapacityReservations(t.Context(), &ec2.DescribeCapacityReservationsInput{
		Filters: []types.Filter{{Name: aws.String("state"), Values: []string{"active"}}},
	})
	if err != nil || len(reservations.CapacityReservations) != 1 || aws.ToString(reservations.CapacityReservations[0].CapacityReservationId) != theirReservation {
		t.Errorf("active reservations are %v, %v; want somebody else's %s alone", reservations, err, theirReservation)
	}
}

func readAll(r *http.Request) (string, error) {
	data, err := io.ReadAll(r.Body)
	return string(data), err
}

func readCloser(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
