package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	flowHeading = regexp.MustCompile(`(?m)^## .* \(at most (\d+) files\)$`)
	flowStep    = regexp.MustCompile("(?m)^\\d+\\. `([^`]+)`")
	flowFile    = regexp.MustCompile("`([a-z0-9_/]+\\.go)`")
)

// TestFlows checks the ways through the code in docs/architecture.md: the files they name exist, none is named twice, and
// none has more than its heading allows.
func TestFlows(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	told, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	headings := flowHeading.FindAllSubmatchIndex(told, -1)
	if len(headings) != 4 {
		t.Fatalf("%d ways are told, want 4", len(headings))
	}
	for i, at := range headings {
		end := len(told)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		name, most := string(told[at[0]:at[1]]), 0
		if _, err := fmt.Sscan(string(told[at[2]:at[3]]), &most); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, step := range flowStep.FindAllStringSubmatch(string(told[at[1]:end]), -1) {
			if seen[step[1]] {
				t.Errorf("%s: %s is named twice", name, step[1])
			}
			seen[step[1]] = true
		}
		if len(seen) == 0 || len(seen) > most {
			t.Errorf("%s: it has %d", name, len(seen))
		}
	}
	for _, named := range flowFile.FindAllStringSubmatch(string(told), -1) {
		if _, err := os.Stat(filepath.Join(root, named[1])); err != nil && strings.Contains(named[1], "/") {
			t.Errorf("docs/architecture.md names %s: %v", named[1], err)
		}
	}
}
