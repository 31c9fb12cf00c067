package kwok

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenon-sh/tenon/cloud"
)

// failed returns a classified error.
func failed(kind cloud.ErrorKind, operation string, err error) error {
	return &cloud.Error{Kind: kind, Reason: string(kind), Operation: operation, Err: err}
}

// classified returns an error of the API server as a provider's; nil for nil.
func classified(operation string, err error) error {
	var known *cloud.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case apierrors.IsTooManyRequests(err):
		return failed(cloud.Throttled, operation, err)
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return failed(cloud.Forbidden, operation, err)
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return failed(cloud.Invalid, operation, err)
	}
	return failed(cloud.Transient, operation, err)
}
