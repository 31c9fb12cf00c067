package deploy_test

import (
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestImageIsPinned: every image that the Dockerfile starts from is named by its content. The builder has the version of Go with
// which the tests have run, and the worker's image starts from nothing.
func TestImageIsPinned(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var from []string
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "FROM "); found {
			from = append(from, rest)
		}
	}
	if len(from) != 2 {
		t.Fatalf("the Dockerfile has %d stages, want the build and the image", len(from))
	}
	pinned := regexp.MustCompile(`^--platform=\$BUILDPLATFORM golang:([0-9.]+)@sha256:[0-9a-f]{64} AS build$`).FindStringSubmatch(from[0])
	if pinned == nil {
		t.Fatalf("the build starts from %q, not from an image with a digest", from[0])
	}
	if "go"+pinned[1] != runtime.Version() {
		t.Errorf("the image is built with Go %s, and this is %s: change the tag and the digest together", pinned[1], runtime.Version())
	}
	if from[1] != "scratch" {
		t.Errorf("the image starts from %q, not from scratch", from[1])
	}
}
