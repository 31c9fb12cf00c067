package starter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// flood is the number of messages in Karpenter's own benchmark of its controller.
const flood = 15_000

// maxDigest limits the test; a busy machine takes a tenth of it.
const maxDigest = 5 * time.Minute

// simulatorVariable turns this test binary into an EC2 simulator with a queue of that name, which prints its URL.
const simulatorVariable = "TENON_TEST_SIMULATOR_QUEUE"

// TestMain runs the tests, or a simulator for one of them.
func TestMain(m *testing.M) {
	queue := os.Getenv(simulatorVariable)
	if queue == "" {
		os.Exit(m.Run())
	}
	sim, err := ec2sim.New(ec2sim.Options{Queues: []string{queue}})
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(sim.URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is over, however it ends
}

// simulator starts a simulator as a separate process, so that its queue is not in this one's memory.
func simulator(t testing.TB, queue string) (url string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), program)
	process.Env = append(os.Environ(), simulatorVariable+"="+queue)
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = process.Wait()
	})
	url, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the simulator does not say where it is: %v", err)
	}
	return strings.TrimSpace(url)
}

// flooded is all edges of a cluster whose queue has a message for each of its claims, one in ten twice, and one in ten
// about a foreign instance or about nothing.
type flooded struct {
	*edge
	messages int
	deleted  chan int
}

// counted sends the number of deleted messages after each deletion.
type counted struct {
	Interruptions
	deleted chan<- int
}

func (c counted) Delete(ctx context.Context, receipts []string) error {
	err := c.Interruptions.Delete(ctx, receipts)
	if err == nil {
		c.deleted <- len(receipts)
	}
	return err
}

func newFlooded(t testing.TB, messages int) *flooded {
	t.Helper()
	f := &flooded{edge: newEdge(t), messages: messages, deleted: make(chan int, messages)}
	url := simulator(t, "flood")
	provider, err := aws.NewFromConfig(awssdk.Config{Region: "us-east-1", BaseEndpoint: awssdk.String(url),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, aws.Options{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	quiet, from := zap.NewNop(), counted{provider.Interruptions("flood"), f.deleted}
	f.notices.cloud, f.notices.offerings.interruptions = from, from
	f.notices.log, f.interruptions.log, f.interruptions.events = quiet, quiet, nil
	f.mirror.claims = make(map[string]*karpv1.NodeClaim, messages)
	say := func(path string, what any) {
		t.Helper()
		body, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Post(url+path, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, response.Status)
		}
	}
	type announcement struct {
		Event     string   `json:"event"`
		Instances []string `json:"instances"`
	}
	kinds := []string{"spot-interruption", "rebalance-recommendation", "stopping", "scheduled-change", "reservation-interruption"}
	for ten := range messages / 10 {
		about := announcement{Event: kinds[ten%len(kinds)]}
		for i := range 8 {
			instance := fmt.Sprintf("i-%016x%d", ten, i)
			f.mirror.claims[instance] = interruptedClaim(instance, instance)
			about.Instances = append(about.Instances, instance)
		}
		about.Instances = append(about.Instances, about.Instances[7])
		say("/_sim/event", about)
		if ten%2 == 0 {
			say("/_sim/message", map[string]string{"body": "this is not an event"})
		} else {
			say("/_sim/event", announcement{"stopped", []string{fmt.Sprintf("i-foreign%d", ten)}})
		}
	}
	return f
}

// digest handles everything in the queue. It returns how long that took and by how many bytes the live heap grew at
// most.
func (f *flooded) digest(t testing.TB) (took time.Duration, grown int64) {
	t.Helper()
	live := func() int64 {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before, began := live(), time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for range receivers {
		working.Go(func() { _ = f.notices.receive(ctx) })
	}
	for left, over := f.messages, time.After(maxDigest); left > 0; grown = max(grown, live()-before) {
		select {
		case n := <-f.deleted:
			left -= n
		case <-over:
			t.Fatalf("%d messages are left after %s", left, maxDigest)
		}
	}
	took = time.Since(began)
	stop()
	working.Wait()
	if left := f.left(t); left != 0 {
		t.Errorf("the metric says that %d messages are left", left)
	}
	runtime.GC()
	return took, max(grown, live()-before)
}

// left returns the number of messages that have not been deleted, according to the metric.
func (f *flooded) left(t testing.TB) int {
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "karpenter_interruption_deleted_messages_total" {
			return f.messages - int(family.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return f.messages
}

func TestFloodOfMessagesDoesNotGrowMemory(t *testing.T) {
	f := newFlooded(t, flood)
	took, grown := f.digest(t)
	t.Logf("%d messages in %s, %.0f per second; the heap was at most %.1f MiB larger than before", flood, took.Round(time.Millisecond),
		flood/took.Seconds(), float64(grown)/(1<<20))
	endings := f.temporal.endings()
	want := map[string]bool{}
	for instance, claim := range f.mirror.claims {
		if kind := f.interruptions.told.facts[claim.UID]; kind == "" {
			t.Fatalf("nobody heard of %s", instance)
		} else if kind != "RebalanceRecommendation" {
			want[claim.Name] = true
		}
	}
	for _, told := range endings {
		if len(told) != 1 {
			t.Fatalf("a claim was told %d times: %+v", len(told), told)
		}
	}
	if len(endings) != len(want) {
		t.Errorf("%d claims were told to end, want %d", len(endings), len(want))
	}
	// The edges remember some hundred bytes of each claim for as long as it exists, and the fake Temporal keeps every
	// signal; a message is seven hundred bytes, and none of them may be kept.
	if most := int64(8 << 20); grown > most {
		t.Errorf("the heap grew by %d bytes, want at most %d for %d claims", grown, most, len(f.mirror.claims))
	}
}

func BenchmarkInterruptions(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		f := newFlooded(b, flood)
		b.StartTimer()
		took, grown := f.digest(b)
		b.ReportMetric(flood/took.Seconds(), "messages/s")
		b.ReportMetric(float64(grown)/(1<<20), "heap-MiB")
	}
}
