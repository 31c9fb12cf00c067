package cliext

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
)

// ClientOptions are the options of every command that talks to a Temporal server.
type ClientOptions struct {
	Address                    string
	ClientAuthority            string
	Namespace                  string
	ApiKey                     string
	GrpcMeta                   []string
	Tls                        bool
	TlsCertPath                string
	TlsCertData                string
	TlsKeyPath                 string
	TlsKeyData                 string
	TlsCaPath                  string
	TlsCaData                  string
	TlsDisableHostVerification bool
	TlsServerName              string
	CodecEndpoint              string
	CodecAuth                  string
	CodecHeader                []string
	Identity                   string
	FlagSet                    *pflag.FlagSet

	flags []string
}

// Description introduces the options in the help text.
func (*ClientOptions) Description() string {
	return "Every command that talks to a server understands these options.\n"
}

// BuildFlags adds a flag for each option to flags.
func (o *ClientOptions) BuildFlags(flags *pflag.FlagSet) {
	o.FlagSet = flags
	own := pflag.NewFlagSet("client", pflag.ContinueOnError)
	own.StringVar(&o.Address, "address", client.DefaultHostPort, "Address of the server's gRPC frontend.")
	own.StringVar(&o.ClientAuthority, "client-authority", "", "gRPC :authority header to send.")
	own.StringVarP(&o.Namespace, "namespace", "n", client.DefaultNamespace, "Namespace on the server.")
	own.StringVar(&o.ApiKey, "api-key", "", "API key to send.")
	own.StringArrayVar(&o.GrpcMeta, "grpc-meta", nil, "gRPC header to send, as `KEY=VALUE`; may be repeated.")
	own.BoolVar(&o.Tls, "tls", false, "Use TLS; implied by an API key and by every other TLS option.")
	own.StringVar(&o.TlsCertPath, "tls-cert-path", "", "File with the client's certificate.")
	own.StringVar(&o.TlsCertData, "tls-cert-data", "", "The client's certificate itself.")
	own.StringVar(&o.TlsKeyPath, "tls-key-path", "", "File with the client's private key.")
	own.StringVar(&o.TlsKeyData, "tls-key-data", "", "The client's private key itself.")
	own.StringVar(&o.TlsCaPath, "tls-ca-path", "", "File with the server's certificate authority.")
	own.StringVar(&o.TlsCaData, "tls-ca-data", "", "The server's certificate authority itself.")
	own.BoolVar(&o.TlsDisableHostVerification, "tls-disable-host-verification", false, "Accept any server name.")
	own.StringVar(&o.TlsServerName, "tls-server-name", "", "Server name to expect instead of the address.")
	own.StringVar(&o.CodecEndpoint, "codec-endpoint", "", "URL of a remote payload codec.")
	own.StringVar(&o.CodecAuth, "codec-auth", "", "Authorization header for the remote codec.")
	own.StringArrayVar(&o.CodecHeader, "codec-header", nil, "Header for the remote codec, as `KEY=VALUE`; may be repeated.")
	own.StringVar(&o.Identity, "identity", "", "Who the server is told made the request.")
	own.VisitAll(func(f *pflag.Flag) { o.flags = append(o.flags, f.Name) })
	flags.AddFlagSet(own)
}

// HideFlags leaves the options out of each command's help; `temporal options` lists them once.
func (o *ClientOptions) HideFlags() {
	for _, name := range o.flags {
		if f := o.FlagSet.Lookup(name); f != nil {
			f.Hidden = true
		}
	}
}

// ClientOptionsBuilder builds an SDK client's options from the configuration file, the environment and flags, in increasing
// order of precedence.
type ClientOptionsBuilder struct {
	CommonOptions CommonOptions
	ClientOptions ClientOptions
	EnvLookup     envconfig.EnvLookup
	Logger        *slog.Logger

	// PayloadCodec is the remote codec in use after Build, nil if there is none.
	PayloadCodec converter.PayloadCodec
}

// Build returns the options. It fails if the configuration cannot be read, or a flag that should hold KEY=VALUE does not.
func (b *ClientOptionsBuilder) Build(context.Context) (client.Options, error) {
	profile, err := b.profile()
	if err != nil {
		return client.Options{}, err
	}
	opts, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, fmt.Errorf("building the client's options: %w", err)
	}
	if b.ClientOptions.Identity != "" {
		opts.Identity = b.ClientOptions.Identity
	}
	if b.ClientOptions.ClientAuthority != "" {
		opts.ConnectionOptions.Authority = b.ClientOptions.ClientAuthority
	}
	if b.Logger != nil {
		opts.Logger = log.NewStructuredLogger(b.Logger)
	}
	if timeout := b.CommonOptions.ClientConnectTimeout; timeout != 0 {
		opts.ConnectionOptions.GetSystemInfoTimeout = timeout.Duration()
	}
	if profile.Codec != nil && profile.Codec.Endpoint != "" {
		if err := b.useCodec(&opts, profile); err != nil {
			return client.Options{}, err
		}
	}
	return opts, nil
}

// profile merges the flags over the settings from file and environment.
func (b *ClientOptionsBuilder) profile() (envconfig.ClientConfigProfile, error) {
	var profile envconfig.ClientConfigProfile
	common, flags := b.CommonOptions, b.ClientOptions
	if !common.DisableConfigFile || !common.DisableConfigEnv {
		loaded, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
			ConfigFilePath:    common.ConfigFile,
			ConfigFileProfile: common.Profile,
			DisableFile:       common.DisableConfigFile,
			DisableEnv:        common.DisableConfigEnv,
			EnvLookup:         b.EnvLookup,
		})
		if err != nil {
			return profile, fmt.Errorf("reading the client's configuration: %w", err)
		}
		profile = loaded
	}
	if profile.Address == "" || flags.given("address") {
		profile.Address = flags.Address
	}
	if profile.Namespace == "" || flags.given("namespace") {
		profile.Namespace = flags.Namespace
	}
	if flags.ApiKey != "" {
		profile.APIKey = flags.ApiKey
	}
	meta, err := keyValues("--grpc-meta", flags.GrpcMeta)
	if err != nil {
		return profile, err
	}
	if len(meta) > 0 {
		merged := maps.Clone(profile.GRPCMeta)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, meta)
		profile.GRPCMeta = merged
	}
	profile.TLS = flags.tls(profile.TLS)
	if flags.CodecEndpoint != "" || (flags.CodecAuth != "" && profile.Codec != nil) {
		if profile.Codec == nil {
			profile.Codec = &envconfig.ClientConfigCodec{}
		}
		override(&profile.Codec.Endpoint, flags.CodecEndpoint)
		override(&profile.Codec.Auth, flags.CodecAuth)
	}
	return profile, nil
}

// tls merges the TLS flags over the configured settings; --tls=false switches TLS off whatever else is set.
func (o *ClientOptions) tls(configured *envconfig.ClientConfigTLS) *envconfig.ClientConfigTLS {
	if o.given("tls") && !o.Tls {
		return &envconfig.ClientConfigTLS{Disabled: true}
	}
	asked := o.Tls || o.TlsDisableHostVerification
	for _, s := range []string{
		o.TlsCertPath, o.TlsCertData, o.TlsKeyPath, o.TlsKeyData, o.TlsCaPath, o.TlsCaData, o.TlsServerName,
	} {
		asked = asked || s != ""
	}
	if !asked {
		return configured
	}
	merged := envconfig.ClientConfigTLS{}
	if configured != nil {
		merged = *configured
	}
	override(&merged.ClientCertPath, o.TlsCertPath)
	override(&merged.ClientKeyPath, o.TlsKeyPath)
	override(&merged.ServerCACertPath, o.TlsCaPath)
	override(&merged.ServerName, o.TlsServerName)
	overrideBytes(&merged.ClientCertData, o.TlsCertData)
	overrideBytes(&merged.ClientKeyData, o.TlsKeyData)
	overrideBytes(&merged.ServerCACertData, o.TlsCaData)
	merged.DisableHostVerification = merged.DisableHostVerification || o.TlsDisableHostVerification
	return &merged
}

func (o *ClientOptions) given(flag string) bool { return o.FlagSet != nil && o.FlagSet.Changed(flag) }

// useCodec makes the client encode and decode payloads with the profile's remote codec.
func (b *ClientOptionsBuilder) useCodec(opts *client.Options, profile envconfig.ClientConfigProfile) error {
	headers, err := keyValues("--codec-header", b.ClientOptions.CodecHeader)
	if err != nil {
		return err
	}
	b.PayloadCodec = converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: strings.ReplaceAll(profile.Codec.Endpoint, "{namespace}", profile.Namespace),
		ModifyRequest: func(r *http.Request) error {
			r.Header.Set("X-Namespace", profile.Namespace)
			for name, value := range headers {
				r.Header.Set(name, value)
			}
			if profile.Codec.Auth != "" {
				r.Header.Set("Authorization", profile.Codec.Auth)
			}
			return nil
		},
	})
	interceptor, err := converter.NewPayloadCodecGRPCClientInterceptor(
		converter.PayloadCodecGRPCClientInterceptorOptions{Codecs: []converter.PayloadCodec{b.PayloadCodec}})
	if err != nil {
		return fmt.Errorf("using the remote codec %s: %w", profile.Codec.Endpoint, err)
	}
	opts.ConnectionOptions.DialOptions = append(opts.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(interceptor))
	return nil
}

func override(setting *string, flag string) {
	if flag != "" {
		*setting = flag
	}
}

func overrideBytes(setting *[]byte, flag string) {
	if flag != "" {
		*setting = []byte(flag)
	}
}

func keyValues(flag string, pairs []string) (map[string]string, error) {
	m := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%s %q: must be KEY=VALUE", flag, pair)
		}
		m[key] = value
	}
	return m, nil
}
