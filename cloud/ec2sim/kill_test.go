package ec2sim_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// victimState is the environment variable with the state file of the simulator that a test runs as a separate process, to
// kill it.
const victimState = "EC2SIM_TEST_VICTIM_STATE"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimState); path != "" {
		serveUntilKilled(path)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(path string) {
	sim, err := ec2sim.New(ec2sim.Options{StateFile: path})
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(sim.URL())
	_, _ = os.Stdin.Read(make([]byte, 1)) // closed when the test process ends, in case it dies before it kills us
	os.Exit(0)
}

// TestEveryAnsweredFleetSurvivesSIGKILL kills a simulator while several clients launch. Everything in an answer must
// exist afterwards, and a repeated request must not launch again.
func TestEveryAnsweredFleetSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	path := stateFile(t)
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimState+"="+path)
	stdin, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill() }()
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	a := &account{cfg: aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(strings.TrimSpace(url)), Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		Retryer: ec2sim.Once,
	}}
	a.ec2 = ec2.NewFromConfig(a.cfg)
	in := fleetInput(a.template(t, "x86_64"), 5, onDemand, a.override(t, "m5.large", "us-east-1a"))

	var mu sync.Mutex
	answered := map[string][]string{}
	asked := []string{}
	enough := make(chan struct{})
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				request := *in
				request.ClientToken = aws.String(fmt.Sprintf("client-%d-%d", client, n))
				mu.Lock()
				asked = append(asked, *request.ClientToken)
				mu.Unlock()
				out, err := a.ec2.CreateFleet(context.WithoutCancel(t.Context()), &request)
				if err != nil {
					return // the simulator was killed
				}
				mu.Lock()
				if answered[*request.ClientToken] = launched(out); len(answered) == 25 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	_ = victim.Wait() // killed, as intended

	b := start(t, ec2sim.Options{StateFile: path})
	for token, want := range answered {
		request := *in
		request.ClientToken = aws.String(token)
		out, err := b.ec2.CreateFleet(ctx(t), &request)
		if err != nil || !slices.Equal(launched(out), want) {
			t.Errorf("token %s: %v, %v; was told %v before the kill", token, launched(out), err, want)
		}
	}
	for _, token := range asked { // launches the unanswered ones, unless they were launched already
		request := *in
		request.ClientToken = aws.String(token)
		if _, err := b.ec2.CreateFleet(ctx(t), &request); err != nil {
			t.Error(err)
		}
	}
	if got, want := len(b.sim.Instances()), 5*len(asked); got != want {
		t.Errorf("%d instances for %d fleets of five", got, len(asked))
	}
}
