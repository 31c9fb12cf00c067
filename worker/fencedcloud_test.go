package worker

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cloud"
)

// countingCloud counts the calls it receives.
type countingCloud struct {
	cloud.Provider
	asked int
}

func (c *countingCloud) ResolveNodeClass(context.Context, cloud.NodeClass) (cloud.NodeClass, error) {
	c.asked++
	return nil, nil
}

func (c *countingCloud) ReleaseNodeClass(context.Context, cloud.NodeClass) error {
	c.asked++
	return nil
}

func (c *countingCloud) RemoveLeftover(context.Context, cloud.Leftover) error {
	c.asked++
	return nil
}

func (c *countingCloud) PrepareLaunch(context.Context, cloud.LaunchSpec) (cloud.LaunchRequest, error) {
	c.asked++
	return cloud.LaunchRequest{}, nil
}

func (c *countingCloud) Launch(context.Context, cloud.LaunchRequest) (cloud.LaunchResult, error) {
	c.asked++
	return cloud.LaunchResult{}, nil
}

func (c *countingCloud) Terminate(context.Context, []string) error {
	c.asked++
	return nil
}

func (c *countingCloud) Tag(context.Context, string, map[string]string) error {
	c.asked++
	return nil
}

// TestCloudIsChangedWithTheLeaseOnly makes every call that changes something in the cloud.
func TestCloudIsChangedWithTheLeaseOnly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, holder string
		asked          int
	}{
		{reason: "the Lease is ours", holder: "tenon_a", asked: 1},
		{reason: "Karpenter holds it", holder: "karpenter-7d9f_1b2c", asked: 0},
	} {
		fence, err := newFence(func(time.Duration) error { return nil }, prometheus.NewRegistry(), zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		fence.see(test.holder, time.Now())
		for what, ask := range map[string]func(c cloud.Provider) error{
			"resolve a class": func(c cloud.Provider) error { _, err := c.ResolveNodeClass(t.Context(), nil); return err },
			"release a class": func(c cloud.Provider) error { return c.ReleaseNodeClass(t.Context(), nil) },
			"remove":          func(c cloud.Provider) error { return c.RemoveLeftover(t.Context(), cloud.Leftover{}) },
			"prepare":         func(c cloud.Provider) error { _, err := c.PrepareLaunch(t.Context(), cloud.LaunchSpec{}); return err },
			"launch":          func(c cloud.Provider) error { _, err := c.Launch(t.Context(), cloud.LaunchRequest{}); return err },
			"terminate":       func(c cloud.Provider) error { return c.Terminate(t.Context(), nil) },
			"tag":             func(c cloud.Provider) error { return c.Tag(t.Context(), "", nil) },
		} {
			counting := &countingCloud{}
			err := ask(fencedCloud{counting, fence})
			if counting.asked != test.asked || (err == nil) != (test.asked == 1) {
				t.Errorf("%s: %s was asked %d times, want %d: %v", test.reason, what, counting.asked, test.asked, err)
			}
			if err != nil && cloud.KindOf(err) != cloud.Transient {
				t.Errorf("%s: %s fails for good: %v", test.reason, what, err)
			}
		}
	}
}
