package aws

import (
	"context"
	"testing"
	"time"

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
	before := time.Now()
	for range 5 {
		b.report(before, true)
	}
	if got := b.limiter.Limit(); got != 2*slowDown {
		t.Errorf("five calls sent together were throttled, and the rate is %v; want it lowered once, to 1.4", got)
	}
	for range 20 {
		b.report(time.Now(), true)
	}
	if got, want := b.limiter.Limit(), rate.Limit(0.1); got != want {
		t.Errorf("the slowest rate is %v; want %v", got, want)
	}
	for range 40 {
		b.report(time.Now(), false)
	}
	if got := b.limiter.Limit(); got != launching.refill {
		t.Errorf("after good replies the rate is %v; want %v", got, launching.refill)
	}
	if got := b.limiter.Burst(); got != launching.burst {
		t.Errorf("after good replies the burst is %d; want %d", got, launching.burst)
	}
}

func TestBucketHonoursTheDeadline(t *testing.T) {
	t.Parallel()
	b := newBucket(limit{1, 0.001})
	if _, err := b.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := b.take(ctx); err == nil {
		t.Error("a token came that takes a quarter of an hour")
	}
}
