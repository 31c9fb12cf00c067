package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// logged matches a line that is logged without the ids of the workflow and the activity that it belongs to.
var logged = regexp.MustCompile(`\b\w+\.[lL]og\.(?:Debug|Info|Warn|Error)\(`)

// backgrounds are files of activities and providers whose lines belong to no activity.
var backgrounds = []string{
	"cloud/aws/refresh.go", // one refresh is for all who wait for it
}

// TestActivitiesLogAsTheirWork checks that what activities do, and what a provider does for them, is logged by logs.Of, so
// that each line has the ids of its workflow.
func TestActivitiesLogAsTheirWork(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	checked := 0
	for _, dir := range []string{"activities", "cloud/aws"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			checked += strings.Count(string(text), "logs.Of(ctx, ")
			if strings.HasSuffix(name, "_test.go") || slices.Contains(backgrounds, name) {
				continue
			}
			for _, line := range logged.FindAllString(string(text), -1) {
				t.Errorf("%s: %s...) has no ids of its workflow: write logs.Of(ctx, log)", name, line)
			}
		}
	}
	if checked == 0 {
		t.Error("no activity logs")
	}
}
