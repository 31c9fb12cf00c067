package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=...); a plain `go build` says "dev".
var version = "dev"

// buildVersion is what `tenon version -o json` prints.
type buildVersion struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  tenon version\n  tenon version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := jsonOnly(output); err != nil {
				return err
			}
			v := currentVersion()
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), v)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "tenon %s (%s, %s)\n", v.Version, v.Go, v.Platform)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

func currentVersion() buildVersion {
	v := buildVersion{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

// notInBuildID matches characters that git tags may contain and build names may not.
var notInBuildID = regexp.MustCompile(`[^0-9A-Za-z._+-]`)

// buildID distinguishes this program from other builds. A release is identified by its version, so that its images for
// several architectures are one build. Other builds may share a version, so their hash is added.
func buildID(version string) (string, error) {
	id := notInBuildID.ReplaceAllString(version, "-")
	if version != "dev" && !strings.HasSuffix(version, "-dirty") {
		return id, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program (or set --build-id): %w", err)
	}
	program, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read this program (or set --build-id): %w", err)
	}
	defer func() { _ = program.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, program); err != nil {
		return "", fmt.Errorf("read this program (or set --build-id): %w", err)
	}
	return id + "-" + hex.EncodeToString(hash.Sum(nil)[:6]), nil
}
