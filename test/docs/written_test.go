package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// spoken are the packages whose words people read.
var spoken = []string{"activities", "api", "cloud", "cluster", "cmd", "deploy", "internal/temporal", "plan", "starter", "worker", "workflows"}

// TestTroubleshootingQuotesTheCode holds what docs/troubleshooting.md says that people see, in the first column of its tables, against
// the texts in the code. Names and numbers are written as dots there.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	t.Parallel()
	pieces := strings.Join(texts(t), "\x00")
	text, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := 0
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		for _, quote := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			if command := regexp.MustCompile(`^(tenon|kubectl|/|karpenter\.sh/)`); command.MatchString(quote[1]) && !strings.HasPrefix(quote[1], "tenon_") {
				continue
			}
			quoted++
			for _, part := range strings.Split(quote[1], "…") {
				if part = strings.TrimSpace(part); len(part) > 3 && !strings.Contains(pieces, part) {
					t.Errorf("docs/troubleshooting.md:%d quotes %q, which the code does not say", i+1, part)
				}
			}
		}
	}
	if quoted < 30 {
		t.Errorf("only %d quotes were found", quoted)
	}
}

// texts returns all texts in the product's code, split where names and numbers are put in.
func texts(t *testing.T) []string {
	t.Helper()
	verb := regexp.MustCompile(`%[-+#0-9.*\[\]]*[a-zA-Z]`)
	var found []string
	for _, dir := range spoken {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						found = append(found, verb.Split(text, -1)...)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	metrics, err := filepath.Glob(filepath.Join(root, "docs", "reference", "metrics.md"))
	if err != nil || len(metrics) == 0 {
		t.Fatalf("no reference of metrics: %v", err)
	}
	text, err := os.ReadFile(metrics[0])
	if err != nil {
		t.Fatal(err)
	}
	return append(found, string(text))
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestLinksLeadSomewhere follows every link of a document to a file or a heading of this repository.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	names, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "CONTRIBUTING.md") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			to, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			path := filepath.Join(root, name)
			if to != "" {
				path = filepath.Join(root, filepath.Dir(name), to)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", name, found[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(t, path), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", name, found[1])
			}
		}
	}
}

// anchors returns the anchors that forges give the headings of a document.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, title := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(title[1]), "")
		found = append(found, strings.ReplaceAll(anchor, " ", "-"))
	}
	return found
}

// TestEveryDocumentIsInTheIndex has docs/README.md name every document.
func TestEveryDocumentIsInTheIndex(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", "reference/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, "docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, err := filepath.Rel(filepath.Join(root, "docs"), path)
			if err != nil {
				t.Fatal(err)
			}
			if name != "README.md" && !strings.Contains(string(index), "("+filepath.ToSlash(name)) {
				t.Errorf("docs/README.md does not name docs/%s", name)
			}
		}
	}
}

// TestReadmeIsShort bounds what a visitor has to read first.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	const most = 900
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(text))); words > most {
		t.Errorf("README.md has %d words, and at most %d are read", words, most)
	}
}
