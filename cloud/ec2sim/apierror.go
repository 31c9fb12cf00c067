package ec2sim

import (
	"errors"
	"fmt"
	"net/http"
)

// apiError is a refusal with the code AWS documents for it. Each protocol renders it in its own way.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func refuse(code, format string, args ...any) error {
	return &apiError{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

func invalidValue(format string, args ...any) error {
	return refuse("InvalidParameterValue", format, args...)
}

func missingParameter(name string) error {
	return refuse("MissingParameter", "The request must contain the parameter %s", name)
}

// errDryRun is EC2's answer to a dry run that would have succeeded.
var errDryRun = &apiError{
	status: http.StatusPreconditionFailed, code: "DryRunOperation",
	message: "Request would have succeeded, but DryRun flag is set.",
}

// errThrottled is EC2's answer when a token bucket is empty. EC2 uses status 503 for it.
var errThrottled = &apiError{
	status: http.StatusServiceUnavailable, code: "RequestLimitExceeded", message: "Request limit exceeded.",
}

// asAPIError turns an unexpected error into AWS's InternalError.
func asAPIError(err error) *apiError {
	if api, ok := errors.AsType[*apiError](err); ok {
		return api
	}
	return &apiError{status: http.StatusInternalServerError, code: "InternalError", message: err.Error()}
}
