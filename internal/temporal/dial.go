// Package temporal connects worker and command line to a Temporal server the way the SDK's standard configuration says:
// TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_..., or a profile of the configuration file that
// the temporal command uses too. Tenon has no settings of its own for this.
package temporal

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.uber.org/zap"
)

// Dial connects to the Temporal server and checks that it answers and has the namespace. The error names the address.
func Dial(ctx context.Context, log *zap.Logger) (client.Client, error) {
	connection, _, err := dial(ctx, log)
	return connection, err
}

// dial is Dial, and says which namespace it is.
func dial(ctx context.Context, log *zap.Logger) (client.Client, string, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, "", fmt.Errorf("read Temporal's configuration: %w", err)
	}
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Logger = NewLogger(log)
	connection, err := client.DialContext(ctx, options)
	var missing *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &missing):
		return nil, "", fmt.Errorf("the Temporal server at %s has no namespace %q (TEMPORAL_NAMESPACE): %w", options.HostPort, options.Namespace, err)
	case err != nil:
		return nil, "", fmt.Errorf("connect to Temporal at %s, namespace %q (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE): %w", options.HostPort, options.Namespace, err)
	}
	return connection, options.Namespace, nil
}
