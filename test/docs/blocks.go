// Package docs runs every command that the documents show: each fenced block of bash in README.md, docs and the README files below
// deploy, in order, with real programs against one laboratory. Commands that need what a laboratory has not, such as a registry
// of images, are checked as far as they can be; rules.go names each with the reason. A command without a rule fails the test.
package docs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// statement is one command of a document as a shell reads it: a line, or several that belong together.
type statement struct {
	line int
	text string
}

// documents returns the documents whose commands are run, relative to the root of the repository.
func documents(root string) ([]string, error) {
	found := []string{"README.md"}
	for _, dir := range []string{"docs", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" || dir == "deploy" && entry.Name() != "README.md" {
				return err
			}
			name, err := filepath.Rel(root, path)
			found = append(found, filepath.ToSlash(name))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("find the documents in %s: %w", dir, err)
		}
	}
	slices.Sort(found)
	return found, nil
}

var (
	opening = regexp.MustCompile("^( *)```(bash|sh|shell|console)$")
	closing = regexp.MustCompile("^ *```$")
)

// statements returns the commands of a document in order.
func statements(ctx context.Context, path string) ([]statement, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []statement
	var within, indent string
	var pending statement
	for i, line := range strings.Split(string(text), "\n") {
		begin := opening.FindStringSubmatch(line)
		switch {
		case within == "" && begin != nil:
			within, indent = begin[2], begin[1]
			continue
		case within != "" && closing.MatchString(line):
			if pending.text != "" {
				return nil, fmt.Errorf("%s:%d: the command has no end: %s", path, pending.line, pending.text)
			}
			within = ""
			continue
		case within == "":
			continue
		}
		line = strings.TrimPrefix(line, indent)
		if pending.text == "" {
			if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
				continue
			}
			pending.line = i + 1
		}
		pending.text += line + "\n"
		if strings.HasSuffix(line, `\`) || !whole(ctx, pending.text) {
			continue
		}
		found = append(found, pending)
		pending = statement{}
	}
	return found, nil
}

// whole says whether a shell would run the text rather than wait for more of it.
func whole(ctx context.Context, text string) bool {
	said, err := exec.CommandContext(ctx, "bash", "-n", "-c", text).CombinedOutput()
	return err == nil && len(said) == 0 // it only warns of a here-document without an end
}
