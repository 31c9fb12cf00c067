package aws

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"
)

// A limit is one row of EC2's request token table: the tokens a bucket holds and the tokens it gains per second.
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
type limit struct {
	burst  int
	refill rate.Limit
}

var (
	// Every Describe call of this package is filtered or paginated; EC2 halves the bucket of those that are not.
	nonMutating = limit{100, 20}
	mutating    = limit{50, 5}
	// Actions with rows of their own. CreateFleet launches like RunInstances, so it is held to that row.
	launching   = limit{5, 2}
	terminating = limit{100, 5}
	tagging     = limit{100, 10}
)

// limitOf returns the row of an action; EC2 gives every action a bucket of its own.
func limitOf(action string) limit {
	switch action {
	case "CreateFleet", "RunInstances":
		return launching
	case "TerminateInstances":
		return terminating
	case "CreateTags":
		return tagging
	}
	if strings.HasPrefix(action, "Describe") || strings.HasPrefix(action, "Get") {
		return nonMutating
	}
	return mutating
}

const (
	// slowest is the share of the published refill rate below which a bucket does not slow down.
	slowest = 1.0 / 20
	// slowDown and speedUp are the factors for a rate after a throttled and after a successful reply. Around the rate
	// that the account really has, about one call in five is throttled.
	slowDown = 0.7
	speedUp  = 1.1
)

// bucket is a model of one of EC2's token buckets. The account's other users share the real bucket, so EC2's replies
// correct the model: a throttled reply lowers the rate, and each successful one raises it a little.
type bucket struct {
	published limit
	limiter   *rate.Limiter
	// turn lets one caller wait for its token at a time, because a wait keeps the rate it began with.
	turn chan struct{}

	mu      sync.Mutex
	slowed  time.Time
	allowed rate.Limit
}

func newBucket(l limit) *bucket {
	return &bucket{published: l, limiter: rate.NewLimiter(l.refill, l.burst), turn: make(chan struct{}, 1), allowed: l.refill}
}

// take waits for a token and returns the time at which it got one.
func (b *bucket) take(ctx context.Context) (time.Time, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	err := b.limiter.Wait(ctx)
	return time.Now(), err
}

// report adjusts the rate to EC2's reply to a call that took its token at this time. It ignores that a call was
// throttled if the bucket has slowed down since.
func (b *bucket) report(taken time.Time, throttled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.published.refill
	switch {
	case throttled && !taken.Before(b.slowed):
		b.slowed = time.Now()
		b.allowed = max(b.allowed*slowDown, full*slowest)
		b.limiter.SetBurst(1)
		b.limiter.SetLimit(b.allowed)
	case !throttled && b.allowed < full:
		if b.allowed = min(b.allowed*speedUp, full); b.allowed == full {
			b.limiter.SetBurst(b.published.burst)
		}
		b.limiter.SetLimit(b.allowed)
	}
}

// bucketError means a token would not have come before the caller's deadline.
type bucketError struct {
	action string
	err    error
}

func (e *bucketError) Error() string {
	return fmt.Sprintf("client-side rate limit of %s: %v", e.action, e.err)
}

func (e *bucketError) Unwrap() error { return e.err }

// buckets holds one bucket per action and makes EC2 clients take a token for each attempt, retries included.
type buckets struct {
	mu       sync.Mutex
	byAction map[string]*bucket
}

func newBuckets() *buckets { return &buckets{byAction: make(map[string]*bucket)} }

func (b *buckets) of(action string) *bucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	got, ok := b.byAction[action]
	if !ok {
		got = newBucket(limitOf(action))
		b.byAction[action] = got
	}
	return got
}

// install puts the buckets behind the retry step of every operation of a client.
func (b *buckets) install(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("TokenBucket", b.take), "Retry", middleware.After)
}

func (b *buckets) take(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	action := awsmiddleware.GetOperationName(ctx)
	bucket := b.of(action)
	taken, err := bucket.take(ctx)
	if err != nil {
		return out, metadata, &bucketError{action: action, err: err}
	}
	out, metadata, err = next.HandleFinalize(ctx, in)
	bucket.report(taken, isThrottle(err))
	return out, metadata, err
}

var throttleCheck = retry.IsErrorThrottles(retry.DefaultThrottles)

func isThrottle(err error) bool {
	return err != nil && throttleCheck.IsErrorThrottle(err) == aws.TrueTernary
}
