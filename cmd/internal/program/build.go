package program

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
)

// unversioned is the version of a plain `go build`.
const unversioned = "dev"

// Build says what a program was built from. It is what `tenon version -o json` prints.
type Build struct {
	// Version is the tag, or the tag and commit, or "dev".
	Version string `json:"version"`
	// Commit is the full hash of the commit; empty if neither the linker nor the go command was told.
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// NewBuild describes this program. The linker sets the two arguments, which are variables of the package main (see the
// Makefile); without a commit, the one that the go command has stamped counts.
func NewBuild(version, commit string) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" {
		b.Version = unversioned
	}
	if info, ok := debug.ReadBuildInfo(); ok && b.Commit == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = s.Value
			}
		}
	}
	return b
}

// notInBuildID matches characters that git tags may contain and build names may not.
var notInBuildID = regexp.MustCompile(`[^0-9A-Za-z._+-]`)

// ID distinguishes this program from other builds. A release is identified by its version, so that its images for
// several architectures are one build. Other builds may share a version, so their hash is added.
func (b Build) ID() (string, error) {
	id := notInBuildID.ReplaceAllString(b.Version, "-")
	if b.Version != unversioned && !strings.HasSuffix(b.Version, "-dirty") {
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
