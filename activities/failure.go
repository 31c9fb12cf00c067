package activities

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// giveUp ends the retries of an activity with a failure that its workflow knows.
func giveUp(failure, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return temporal.NewNonRetryableApplicationError(err.Error(), failure, err)
}

// cloudFailure turns a provider's error into the error that tells Temporal what to do. It is the only place that translates
// kinds of cloud errors.
func cloudFailure(doing string, err error) error {
	if err == nil {
		return nil
	}
	switch kind := cloud.KindOf(err); kind {
	case cloud.InsufficientCapacity:
		return giveUp(workflows.FailureInsufficientCapacity, "%s: %w", doing, err)
	case cloud.NodeClassNotReady:
		return giveUp(workflows.FailureNodeClassNotReady, "%s: %w", doing, err)
	case cloud.StaleRequest:
		return giveUp(workflows.FailureStaleRequest, "%s: %w", doing, err)
	case cloud.Throttled:
		return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%s: %v", doing, err), string(kind), temporal.ApplicationErrorOptions{
			Cause: err, NextRetryDelay: throttleDelay(err), Category: temporal.ApplicationErrorCategoryBenign})
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// throttleDelay returns how long to wait after the cloud has throttled a call.
func throttleDelay(err error) time.Duration {
	var throttled *cloud.Error
	if errors.As(err, &throttled) && throttled.RetryAfter > 0 {
		return throttled.RetryAfter
	}
	return 2 * time.Second
}
