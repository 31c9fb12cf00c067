// Package temporal connects the worker and the command line to a Temporal server by the SDK's standard configuration:
// TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_..., or a profile of the configuration file that the
// temporal command uses too. Tenon has settings of its own beside it: the file of a key that is replaced now and then
// (KeyFileVariable), and the keys with which payloads are encrypted (package codec).
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
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tenon-sh/tenon/internal/codec"
)

// Dial connects to the Temporal server and checks that it answers and has the namespace. The error names the address. Without
// keys of its own, a person's command has the codec server of the configuration decrypt (TEMPORAL_CODEC_ENDPOINT and
// TEMPORAL_CODEC_AUTH), as the temporal command does.
func Dial(ctx context.Context, keys codec.Options, log *zap.Logger) (client.Client, error) {
	options, remote, err := configuration(log)
	if err != nil {
		return nil, err
	}
	if keys.Directory == "" && remote.Endpoint != "" {
		err = encode(&options, codec.NewRemote(remote.Endpoint, remote.Auth, options.Namespace), true)
	} else {
		err = encodeWith(&options, keys)
	}
	if err != nil {
		return nil, err
	}
	connection, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, refused(options.HostPort, options.Namespace, err)
	}
	return connection, nil
}

// configuration returns the SDK's standard configuration, with address and namespace filled in, and the codec server that it
// names.
func configuration(log *zap.Logger) (options client.Options, remote envconfig.ClientConfigCodec, err error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return options, remote, fmt.Errorf("read Temporal's configuration: %w", err)
	}
	if profile.Codec != nil {
		remote = *profile.Codec
	}
	if options, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{}); err != nil {
		return options, remote, fmt.Errorf("read Temporal's configuration: %w", err)
	}
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Logger = NewLogger(log)
	return options, remote, keyFromFile(&options)
}

// encodeWith has a client encrypt with these keys. Without any it reads what is in clear only, and says so of the rest.
func encodeWith(options *client.Options, keys codec.Options) error {
	read, err := codec.New(keys)
	if err != nil {
		return err
	}
	return encode(options, read, read.Encrypts())
}

func encode(options *client.Options, with converter.PayloadCodec, encrypts bool) error {
	interceptor, err := codec.Interceptor(with, encrypts)
	if err != nil {
		return fmt.Errorf("configure the codec: %w", err)
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(interceptor))
	return nil
}

// refused describes why a connection failed, and names the settings that matter.
func refused(address, namespace string, err error) error {
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return fmt.Errorf("the Temporal server at %s has no namespace %q (TEMPORAL_NAMESPACE); create it with tenon setup: %w", address, namespace, err)
	}
	return fmt.Errorf("connect to Temporal at %s, namespace %q (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE): %w", address, namespace, err)
}
