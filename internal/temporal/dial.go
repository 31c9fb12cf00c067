// Package temporal connects the worker and the command line to a Temporal server by the SDK's standard configuration:
// TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_..., or a profile of the configuration file that the
// temporal command uses too. Tenon has one setting of its own for this, the file of a key that is replaced now and then
// (KeyFileVariable).
//
// The command line needs an answer (Dial). A worker does not: it starts while the server is away, and checks now and then
// whether it answers (Server). Before the first worker starts, somebody prepares the namespace (Prepare).
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
	options, err := configuration(log)
	if err != nil {
		return nil, err
	}
	connection, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, refused(options.HostPort, options.Namespace, err)
	}
	return connection, nil
}

// configuration returns the SDK's standard configuration, with address and namespace filled in.
func configuration(log *zap.Logger) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, fmt.Errorf("read Temporal's configuration: %w", err)
	}
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Logger = NewLogger(log)
	return options, keyFromFile(&options)
}

// refused describes why a connection failed, and names the settings that matter.
func refused(address, namespace string, err error) error {
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return fmt.Errorf("the Temporal server at %s has no namespace %q (TEMPORAL_NAMESPACE); create it with tenon setup: %w", address, namespace, err)
	}
	return fmt.Errorf("connect to Temporal at %s, namespace %q (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE): %w", address, namespace, err)
}
