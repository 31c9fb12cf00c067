package architecture

import (
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// floors are the packages of the planner from the bottom to the top, each with the lower ones that it may import. The
// planner's consumers import only the package plan.
var floors = []struct {
	name string
	over []string
}{
	{name: "model"},
	{name: "solve"},
	{name: "rules", over: []string{"model"}},
	{name: "devices", over: []string{"model"}},
	{name: "market", over: []string{"model", "rules", "devices", "solve"}}, // solve has the arithmetic of vectors
	{name: "place", over: []string{"model", "rules", "devices", "market", "solve"}},
	{name: "lifecycle", over: []string{"model", "rules", "market"}},
	{name: "disrupt", over: []string{"model", "rules", "solve", "market", "place", "lifecycle"}},
	{name: "", over: []string{"model", "market", "place", "lifecycle", "disrupt"}},
}

// maxGlossary is the maximum number of lines of the glossary in plan's package comment.
const maxGlossary = 40

const planner = Module + "/plan"

// floorPath returns the import path of a floor.
func floorPath(name string) string { return strings.TrimSuffix(planner+"/"+name, "/") }

func TestFloorsImportDownwards(t *testing.T) {
	t.Parallel()
	graph := importGraph(t)
	known := map[string]bool{}
	for _, floor := range floors {
		p := floorPath(floor.name)
		known[p] = true
		for _, imported := range graph[p].Imports {
			name, ours := strings.CutPrefix(imported, planner+"/")
			if ours && !slices.Contains(floor.over, name) {
				t.Errorf("%s imports %s: it may import %v of the planner", p, imported, floor.over)
			}
		}
	}
	for p := range graph {
		if within(p, planner) && !known[p] && !strings.Contains(p, ".test") {
			t.Errorf("%s is no floor of the planner", p)
		}
	}
}

func TestSolveKnowsIntegersOnly(t *testing.T) {
	t.Parallel()
	for _, imported := range importGraph(t)[floorPath("solve")].Imports {
		if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
			t.Errorf("%s imports %s: it has the standard library only", floorPath("solve"), imported)
		}
	}
}

func TestConsumersUseTheFacade(t *testing.T) {
	t.Parallel()
	for p, imports := range importGraph(t) {
		if !within(p, Module) || within(p, planner) {
			continue
		}
		for _, imported := range imports.Imports {
			if within(imported, planner) && imported != planner {
				t.Errorf("%s imports %s: only the package plan is for others", p, imported)
			}
		}
	}
}

// TestGlossary checks that the planner has one short list of its words.
func TestGlossary(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(moduleRoot(t), "plan", "plan.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	_, glossary, found := strings.Cut(file.Doc.Text(), "# Glossary\n")
	if !found {
		t.Fatal("the comment of package plan has no section \"Glossary\"")
	}
	glossary, _, _ = strings.Cut(glossary, "\n# ")
	lines := strings.Split(strings.TrimSpace(glossary), "\n")
	if len(lines) > maxGlossary {
		t.Errorf("the glossary has %d lines, more than %d", len(lines), maxGlossary)
	}
	words := map[string]bool{}
	for _, source := range sourcesOf(t, "plan") {
		maps.Copy(words, source.defined())
	}
	terms := 0
	for _, line := range lines {
		term, _, defines := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ": ")
		if !defines || !strings.HasPrefix(strings.TrimSpace(line), "- ") {
			continue
		}
		terms++
		for _, word := range strings.Split(term, ", ") {
			if !words[strings.ToLower(strings.ReplaceAll(word, " ", ""))] {
				t.Errorf("the glossary explains %q, which names nothing in the planner", word)
			}
		}
	}
	if terms == 0 {
		t.Error("the glossary explains nothing")
	}
}
