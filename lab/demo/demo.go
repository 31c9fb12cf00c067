// Package demo tells Tenon's story on a laboratory of its own and checks every sentence of it: pods become pending and
// get nodes; a node is drained by hand while a PodDisruptionBudget stands in the way; everything is scaled away, and with
// it every node and every instance. It does what a person would do, with the tenon command, and believes nothing but
// the API server and the simulated cloud.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/worker"
)

// Options say how the story is told.
type Options struct {
	// Dir is where the laboratory lives; empty means a temporary directory that is removed afterwards.
	Dir string
	// Bin holds kubelab and temporal; Tenon is the tenon program itself.
	Bin, Tenon string
	// Pods is how many pods become pending; at least 20.
	Pods int
	// Out is where the story goes.
	Out io.Writer
}

// Run tells the story. Its error says which sentence was not true.
func Run(ctx context.Context, o Options) error {
	if o.Pods < 20 {
		return fmt.Errorf("--pods %d: must be at least 20", o.Pods)
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "tenon-demo-")
		if err != nil {
			return fmt.Errorf("make a directory for the laboratory: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.Dir = dir
	}
	s := &story{Options: o, began: time.Now()}
	s.say("starting a laboratory: Kubernetes, Temporal, a simulated EC2, Tenon")
	l, err := lab.Start(ctx, lab.Options{Dir: o.Dir, Bin: o.Bin, Tenon: o.Tenon})
	if err != nil {
		return err
	}
	err = s.tell(ctx, l)
	if err == nil {
		s.summary()
	} else {
		err = fmt.Errorf("%w\n  logs of all processes are in %s", err, o.Dir)
	}
	return errors.Join(err, l.Stop())
}

// tell tells the story on a running laboratory.
func (s *story) tell(ctx context.Context, l *lab.Lab) error {
	config, err := l.RESTConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	if s.kube, err = client.New(config, client.Options{Scheme: worker.Scheme()}); err != nil {
		return fmt.Errorf("connect to the laboratory: %w", err)
	}
	s.lab = l
	s.step("laboratory ready", "Temporal UI "+l.UIURL())
	for _, chapter := range []func(context.Context) error{s.scaleOut, s.drainByHand, s.scaleToZero} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// story is a demo while it is told.
type story struct {
	Options
	lab   *lab.Lab
	kube  client.Client
	began time.Time
	steps []step
	// peak is what the fullest cluster cost, in US dollars per hour.
	peak bill
}

// step is one line of the timeline.
type step struct {
	at           time.Duration
	what, detail string
}

// bill is what the simulated cloud charges.
type bill struct {
	Instances    int     `json:"instances"`
	PricePerHour float64 `json:"usdPerHour"`
}

// say prints a line of the story.
func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.Out, "%6.1fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// step prints a line and keeps it for the timeline.
func (s *story) step(what, detail string) {
	s.steps = append(s.steps, step{time.Since(s.began), what, detail})
	s.say("%s: %s", what, detail)
}

// summary prints the timeline.
func (s *story) summary() {
	fmt.Fprintf(s.Out, "\n%-9s %-9s %s\n", "AT", "TOOK", "STEP")
	var last time.Duration
	for _, step := range s.steps {
		fmt.Fprintf(s.Out, "%7.1fs  %7.1fs  %s: %s\n", step.at.Seconds(), (step.at - last).Seconds(), step.what, step.detail)
		last = step.at
	}
	fmt.Fprintf(s.Out, "\nat its fullest: %d instances, %.3f $/hour; now: none\n", s.peak.Instances, s.peak.PricePerHour)
}

// await asks until the answer is yes, telling now and then what it is waiting for. What is waited for must come within
// the limit; the error says how far it got.
func (s *story) await(ctx context.Context, what string, limit time.Duration, done func(context.Context) (ok bool, state string, err error)) error {
	story := ctx
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	told := time.Now()
	for {
		ok, state, err := done(ctx)
		if err == nil && ok {
			return nil
		}
		if story.Err() != nil {
			return fmt.Errorf("interrupted while waiting for %s: %s: %w", what, state, story.Err())
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s did not come true within %s: %s (%w)", what, limit, state, errors.Join(err, ctx.Err()))
		}
		if time.Since(told) > 3*time.Second {
			s.say("  %s: %s", what, state)
			told = time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tenon runs the tenon command as a person would, and returns what it prints.
func (s *story) tenon(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.Tenon, args...)
	cmd.Env = os.Environ()
	for name, value := range s.lab.Env() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return out, fmt.Errorf("tenon %v: %w: %s", args, err, exit.Stderr)
		}
		return out, fmt.Errorf("tenon %v: %w", args, err)
	}
	return out, nil
}

// cloud asks the simulated cloud something that EC2 itself would not tell.
func (s *story) cloud(ctx context.Context, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.lab.EC2SimURL()+path, nil)
	if err != nil {
		return fmt.Errorf("ask the simulated EC2: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the simulated EC2: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the simulated EC2 for %s: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("read the simulated EC2's answer to %s: %w", path, err)
	}
	return nil
}

// claimsAndNodes counts what there is.
func (s *story) claimsAndNodes(ctx context.Context) (claims []karpv1.NodeClaim, nodes []corev1.Node, err error) {
	var claimList karpv1.NodeClaimList
	var nodeList corev1.NodeList
	if err := s.kube.List(ctx, &claimList); err != nil {
		return nil, nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	if err := s.kube.List(ctx, &nodeList); err != nil {
		return nil, nil, fmt.Errorf("list Nodes: %w", err)
	}
	return claimList.Items, nodeList.Items, nil
}

// apply creates an object, or replaces the one that is left from an earlier telling.
func (s *story) apply(ctx context.Context, object client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", object.GetName(), err)
	}
	delete(content, "status")
	if err := s.kube.Apply(ctx, unstructuredApply(content), client.FieldOwner("tenon-demo"), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	return nil
}
