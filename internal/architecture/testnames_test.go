package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	testPart     = regexp.MustCompile(`(?m)^\s*\{(?:name: )?"(\w+)",`)
	testNamed    = regexp.MustCompile(`\bTest[A-Z]\w*(?:/[A-Z]\w*)?`)
)

// TestDocumentsNameTestsThatExist checks the tests by which documents show a claim, with the parts that a table of the test's
// package has.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	parts, documents := map[string]string{}, map[string]string{} // of the package of each test; by path
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".md") {
			documents[path] = string(text)
			return nil
		}
		for _, test := range testFunction.FindAllStringSubmatch(string(text), -1) {
			parts[test[1]] += strings.Join(partsOf(string(text)), " ") + " "
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for path, text := range documents {
		for _, name := range testNamed.FindAllString(text, -1) {
			test, part, _ := strings.Cut(name, "/")
			has, exists := parts[test]
			if named++; !exists || part != "" && !strings.Contains(" "+has, " "+part+" ") {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
	if named == 0 {
		t.Error("no document names a test")
	}
}

func partsOf(text string) []string {
	var names []string
	for _, part := range testPart.FindAllStringSubmatch(text, -1) {
		names = append(names, part[1])
	}
	return names
}
