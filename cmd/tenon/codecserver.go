package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/codec"
	"github.com/tenon-sh/tenon/internal/logs"
)

func newCodecServerCommand() *cobra.Command {
	options := codec.ServerOptions{Address: "127.0.0.1:8089"}
	var keys codec.Options
	level := "info"
	cmd := &cobra.Command{
		Use:   "codec-server",
		Short: "Decrypt what Temporal keeps, for Temporal's web UI and command",
		Long: `Serves /decode and /encode, by which Temporal's web UI and the temporal command show what workers with --codec-keys have
encrypted. It has the workers' keys, reads nothing from Temporal, and keeps nothing. Each request is logged: when, from where
and for which namespace.

Whoever reaches it can read everything. So without --token-file it listens on this machine only: run it where the browser is, or
reach the chart's by kubectl port-forward, which asks the API server who you are. With a token, callers present it as
"Authorization: Bearer TOKEN": the temporal command by --codec-auth, a browser through a proxy that adds it once people have
signed in. The server judges no JSON Web Tokens of its own.

Scripts of the origin of --ui-origin may read the answers, those of every other page may not.`,
		Example: `  tenon codec-server --codec-keys ./keys --codec-key-id 2026-11 --ui-origin https://temporal.example.com
  temporal workflow show --workflow-id my-cluster/provisioning --codec-endpoint http://127.0.0.1:8089
  tenon codec-server --address :8089 --token-file token --tls-cert-file tls.crt --tls-key-file tls.key --codec-keys ./keys --codec-key-id 2026-11`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			log, err := logs.New(logs.Options{Format: "json", Levels: level}, os.Stderr)
			if err != nil {
				return err
			}
			defer func() { _ = log.Sync() }()
			read, err := codec.New(keys)
			if err != nil {
				return err
			}
			server, err := codec.NewServer(read, options, log)
			if err != nil {
				return err
			}
			return server.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&options.Address, "address", options.Address, "where to listen; without --token-file only on this machine")
	f.StringVar(&options.HealthProbeAddress, "health-probe-address", "", "address of /healthz, which --address serves too, for a kubelet (default: none)")
	f.StringVar(&options.UIOrigin, "ui-origin", "", "origin of Temporal's web UI, such as https://temporal.example.com (default: no page may read the answers)")
	f.StringVar(&options.TokenFile, "token-file", "", "file with the token that callers need; it is read anew for each request")
	f.StringVar(&options.TLSCertFile, "tls-cert-file", "", "certificate of the server, as PEM; it is read anew for each connection (default: plain HTTP)")
	f.StringVar(&options.TLSKeyFile, "tls-key-file", "", "key of the certificate, as PEM")
	f.StringVar(&level, "log-level", level, "debug, info, warn or error")
	keys.Flags(f)
	return cmd
}
