// Package cliext stands in for the module github.com/temporalio/cli/cliext: the options that every command of the
// Temporal CLI shares, the values their flags take, and the client built from them.
//
// The CLI keeps that module in a folder of its repository and uses it through a `replace` directive. It has no published
// version, so no other module can require and build the CLI's own module. This package provides what the CLI at the pinned
// version calls and nothing more; a newer CLI that needs more does not compile until it is added here. The development
// server, the web UI and all commands remain the CLI's. Logging in to Temporal Cloud with OAuth is left out: API keys and
// TLS certificates work as usual.
package cliext

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
)

// CommonOptions are the options of every command.
type CommonOptions struct {
	Env                     string
	EnvFile                 string
	ConfigFile              string
	Profile                 string
	DisableConfigFile       bool
	DisableConfigEnv        bool
	LogLevel                FlagStringEnum
	LogFormat               FlagStringEnum
	Output                  FlagStringEnum
	TimeFormat              FlagStringEnum
	Color                   FlagStringEnum
	NoJsonShorthandPayloads bool
	CommandTimeout          FlagDuration
	ClientConnectTimeout    FlagDuration
	FlagSet                 *pflag.FlagSet
}

// Description introduces the options in the help text.
func (*CommonOptions) Description() string {
	return "Every command understands these options.\n"
}

// BuildFlags adds a flag for each option to flags.
func (o *CommonOptions) BuildFlags(flags *pflag.FlagSet) {
	o.FlagSet = flags
	o.LogLevel = NewFlagStringEnum([]string{"debug", "info", "warn", "error", "never"}, "info")
	o.LogFormat = NewFlagStringEnum([]string{"text", "json", "pretty"}, "text")
	o.Output = NewFlagStringEnum([]string{"text", "json", "jsonl", "none"}, "text")
	o.TimeFormat = NewFlagStringEnum([]string{"relative", "iso", "raw"}, "relative")
	o.Color = NewFlagStringEnum([]string{"always", "never", "auto"}, "auto")

	flags.StringVar(&o.Env, "env", "default", "Name of the environment (`ENV`) to take settings from.")
	flags.StringVar(&o.EnvFile, "env-file", "", "File that holds the environments.")
	flags.StringVar(&o.ConfigFile, "config-file", "", "TOML file that holds the client profiles.")
	flags.StringVar(&o.Profile, "profile", "", "Profile of the configuration file to use.")
	flags.BoolVar(&o.DisableConfigFile, "disable-config-file", false, "Read no configuration file.")
	flags.BoolVar(&o.DisableConfigEnv, "disable-config-env", false, "Read no configuration from the environment.")
	flags.Var(&o.LogLevel, "log-level", "Log level: "+o.LogLevel.choices()+".")
	flags.Var(&o.LogFormat, "log-format", "Log format: "+o.LogFormat.choices()+".")
	flags.VarP(&o.Output, "output", "o", "Format of the data printed: "+o.Output.choices()+".")
	flags.Var(&o.TimeFormat, "time-format", "How times are printed: "+o.TimeFormat.choices()+".")
	flags.Var(&o.Color, "color", "When to use colour: "+o.Color.choices()+".")
	flags.BoolVar(&o.NoJsonShorthandPayloads, "no-json-shorthand-payloads", false, "Print payloads raw even as JSON.")
	flags.Var(&o.CommandTimeout, "command-timeout", "Longest time the command may take; 0s means no limit.")
	flags.Var(&o.ClientConnectTimeout, "client-connect-timeout", "Longest time to connect; 0s means no limit.")
}

// NewLogger returns the logger that the options ask for. It fails if the log level or the format is unknown.
func NewLogger(o CommonOptions, w io.Writer) (*slog.Logger, error) {
	if o.LogLevel.Value == "never" {
		return slog.New(slog.DiscardHandler), nil
	}
	level := slog.LevelInfo
	if o.LogLevel.Value != "" {
		if err := level.UnmarshalText([]byte(strings.ToUpper(o.LogLevel.Value))); err != nil {
			return nil, fmt.Errorf("log level %q: %w", o.LogLevel.Value, err)
		}
	}
	opts := &slog.HandlerOptions{Level: level}
	switch o.LogFormat.Value {
	case "", "text", "pretty":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, fmt.Errorf("log format %q is unknown", o.LogFormat.Value)
	}
}
