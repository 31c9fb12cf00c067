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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
)

// Options configure the demo.
type Options struct {
	// Dir is the lab's directory; empty means a temporary directory that is removed afterwards.
	Dir string
	// Bin is the directory that holds kubelab and temporal. TenonLab and Tenon are the paths of these programs.
	Bin, TenonLab, Tenon string
	// Postgres runs the lab's Temporal on PostgreSQL (see lab.Options).
	Postgres bool
	// Pods is the number of pods to create; at least 20.
	Pods int
	// Out receives the output.
	Out io.Writer
}

// story is a running demo.
type story struct {
	Options
	lab   *lab.Lab
	kube  client.Client
	began time.Time
	steps []step
	// peak is the bill at the moment when all pods run.
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

// say prints a line with the time since the start.
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

// await polls done until it reports true, and prints the state about every 3 seconds. It fails after limit; the error
// contains the last state.
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

// cloud reads from the simulator's own endpoints, which EC2 does not have, into answer.
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

// claimsAndNodes returns all NodeClaims and Nodes of the cluster.
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

// apply creates an object, or updates the one left from an earlier run.
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

// unstructuredApply converts content to an argument of server-side apply.
func unstructuredApply(content map[string]any) runtime.ApplyConfiguration {
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
}

// namespace holds the demo's pods.
const namespace = "demo"
