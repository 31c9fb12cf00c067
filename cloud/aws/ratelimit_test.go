package aws

import (
	"testing"

	"golang.org/x/time/rate"
)

func TestLimitOf(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]limit{
		"CreateFleet":          launching,
		"TerminateInstances":   terminating,
		"CreateTags":           tagging,
		"DescribeInstances":    nonMutating,
		"CreateLaunchTemplate": mutating,
	} {
		if got := limitOf(action); got != want {
			t.Errorf("limitOf(%s) = %v; want %v", action, got, want)
		}
	}
}

func TestBucketFollowsEC2(t *testing.T) {
	t.Parallel()
	b := newBucket(launching)
	b.report(true)
	if got := b.limiter.Limit(); got != 1 {
		t.Errorf("after one throttled reply the rate is %v; want 1", got)
	}
	for range 20 {
		b.report(true)
	}
	if got, want := b.limiter.Limit(), rate.Limit(0.1); got != want {
		t.Errorf("the slowest rate is %v; want %v", got, want)
	}
	for range 40 {
		b.report(false)
	}
	if got := b.limiter.Limit(); got != launching.refill {
		t.Errorf("after good replies the rate is %v; want %v", got, launching.refill)
	}
	if got := b.limiter.Burst(); got != launching.burst {
		t.Errorf("after good replies the burst is %d; want %d", got, launching.burst)
	}
}
