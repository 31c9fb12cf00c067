package aws

import (
	"context"
	"fmt"
	"strings"
	"sync"

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

// slowest is the share of the published refill rate below which a bucket does not slow down.
const slowest = 1.0 / 20

// bucket is the client's image of one of EC2's token buckets. The account's other users drink from the same bucket, so
// the image is corrected by what EC2 says: each throttled reply halves the rate, each good one gives a twentieth back.
type bucket struct {
	published limit
	limiter   *rate.Limiter
	mu        sync.Mutex
}

func newBucket(l limit) *bucket {
	return &bucket{published: l, limiter: rate.NewLimiter(l.refill, l.burst)}
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

func (b *bucket) report(throttled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.published.refill
	now := b.limiter.Limit()
	switch {
	case throttled:
		b.limiter.SetLimit(max(now/2, full*slowest))
		b.limiter.SetBurst(1)
	case now < full:
		if now = min(now+full/20, full); now == full {
			b.limiter.SetBurst(b.published.burst)
		}
		b.limiter.SetLimit(now)
	}
}

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
	if err := bucket.limiter.Wait(ctx); err != nil {
		return out, metadata, &bucketError{action: action, err: err}
	}
	out, metadata, err = next.HandleFinalize(ctx, in)
	bucket.report(isThrottle(err))
	return out, metadata, err
}

var throttleCheck = retry.IsErrorThrottles(retry.DefaultThrottles)

func isThrottle(err error) bool {
	return err != nil && throttleCheck.IsErrorThrottle(err) == aws.TrueTernary
}
