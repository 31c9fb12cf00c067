package cloud

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind says what the caller of a provider has to do about an error.
type ErrorKind string

const (
	// Transient errors go away by themselves: retry with backoff. It is the kind of every unclassified error.
	Transient ErrorKind = "Transient"
	// Throttled means the cloud asked for fewer calls: retry, not before Error.RetryAfter.
	Throttled ErrorKind = "Throttled"
	// InsufficientCapacity means none of the requested offerings has capacity now: request others.
	InsufficientCapacity ErrorKind = "InsufficientCapacity"
	// NodeClassNotReady means the node class has no resolved subnets, images or profile: the claim cannot be launched.
	NodeClassNotReady ErrorKind = "NodeClassNotReady"
	// ParameterMismatch means the token was used before with another request: look for the instances by launch group.
	ParameterMismatch ErrorKind = "ParameterMismatch"
	// StaleRequest means something the request names is gone, such as a launch template: prepare it again.
	StaleRequest ErrorKind = "StaleRequest"
	// Invalid means the cloud will never accept the request as it is; a person has to change a manifest.
	Invalid ErrorKind = "Invalid"
	// Forbidden means the permissions, or the ownership of the instance, do not allow it; a person has to act.
	Forbidden ErrorKind = "Forbidden"
)

// Error is a classified provider error.
type Error struct {
	Kind ErrorKind
	// Reason is a short CamelCase word for conditions and metrics, such as the CreateError reasons of Karpenter:
	// Unauthorized, InvalidAMIID, RequestLimitExceeded.
	Reason string
	// Operation is the cloud's operation that failed.
	Operation string
	// RetryAfter is the minimum wait before a retry; zero leaves it to the caller.
	RetryAfter time.Duration
	// Answered says that the cloud has answered the request and launched nothing. The token is spent: sending it again
	// may bring the same answer for ever.
	Answered bool
	// Unsure says that an answered request may have launched something all the same. The caller has to look for
	// instances before it asks for the launch with another token.
	Unsure bool
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%s): %v", e.Operation, e.Reason, e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of a provider's error: Transient if it was never classified, and "" for nil.
func KindOf(err error) ErrorKind {
	if err == nil {
		return ""
	}
	var classified *Error
	if errors.As(err, &classified) {
		return classified.Kind
	}
	return Transient
}

// ReasonOf returns the reason of a provider's error, "" where it has none.
func ReasonOf(err error) string {
	var classified *Error
	if errors.As(err, &classified) {
		return classified.Reason
	}
	return ""
}

// Answered reports whether a provider's error is the cloud's final answer to a request, so that its token is spent.
func Answered(err error) bool {
	var classified *Error
	return errors.As(err, &classified) && classified.Answered
}

// Unsure reports whether a request may have launched something although the cloud answered it with this error.
func Unsure(err error) bool {
	var classified *Error
	return errors.As(err, &classified) && classified.Unsure
}
