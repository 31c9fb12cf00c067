package ec2sim

import (
	"errors"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// Once returns a Retryer for clients that must know how many requests they make. It does not retry a request that was
// answered, refused or lost, only one whose connection the SDK itself closed while reading the answer. See
// Options.Latency.
func Once() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.RateLimiter = 3, ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		o.Retryables = []retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary { return aws.BoolTernary(errors.Is(err, net.ErrClosed)) })}
		o.Timeouts = nil
	})
}
