package cliext

import (
	"context"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

type environment map[string]string

func (e environment) LookupEnv(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

func (e environment) Environ() []string {
	var all []string
	for name, value := range e {
		all = append(all, name+"="+value)
	}
	return all
}

func TestBuild(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string // what the row shows
		env                environment
		args               []string
		address, namespace string
		tls                bool
	}{
		{name: "defaults", address: "localhost:7233", namespace: "default"},
		{
			name: "the environment comes before defaults",
			env:  environment{"TEMPORAL_ADDRESS": "lab:1", "TEMPORAL_NAMESPACE": "tenon"}, address: "lab:1", namespace: "tenon",
		},
		{
			name: "a flag comes before the environment",
			env:  environment{"TEMPORAL_ADDRESS": "lab:1"}, args: []string{"--address=lab:2"}, address: "lab:2", namespace: "default",
		},
		{
			name: "an API key implies TLS", args: []string{"--api-key=key", "--address=cloud:443"},
			address: "cloud:443", namespace: "default", tls: true,
		},
		{
			name: "TLS can be switched off", args: []string{"--tls-server-name=x", "--tls=false"},
			address: "localhost:7233", namespace: "default",
		},
		{name: "a TLS flag implies TLS", args: []string{"--tls-server-name=x"}, address: "localhost:7233", namespace: "default", tls: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var options ClientOptions
			flags := pflag.NewFlagSet("temporal", pflag.ContinueOnError)
			options.BuildFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			builder := ClientOptionsBuilder{
				CommonOptions: CommonOptions{DisableConfigFile: true}, ClientOptions: options, EnvLookup: test.env,
			}
			got, err := builder.Build(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got.HostPort != test.address || got.Namespace != test.namespace || (got.ConnectionOptions.TLS != nil) != test.tls {
				t.Errorf("address %q, namespace %q, TLS %t; want %q, %q, %t", got.HostPort, got.Namespace,
					got.ConnectionOptions.TLS != nil, test.address, test.namespace, test.tls)
			}
		})
	}
}

func TestParseFlagDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0s":     0,
		"90m":    90 * time.Minute,
		"2d":     48 * time.Hour,
		"1d12h":  36 * time.Hour,
		"250ms":  250 * time.Millisecond,
		"1h0.5s": time.Hour + 500*time.Millisecond,
	} {
		if got, err := ParseFlagDuration(text); err != nil || got != want {
			t.Errorf("ParseFlagDuration(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-1d", "3", "1d-1h5"} {
		if got, err := ParseFlagDuration(text); err == nil {
			t.Errorf("ParseFlagDuration(%q) = %s, want an error", text, got)
		}
	}
}
