package architecture_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// floors are the packages of the planner from the bottom to the top, each with those of the lower ones that it may import.
// The planner's consumers import the package plan alone.
var floors = []struct {
	name string
	over []string
}{
	{name: "model"},
	{name: "solve"},
	{name: "rules", over: []string{"model"}},
	{name: "market", over: []string{"model", "rules", "solve"}}, // solve has the arithmetic of vectors
	{name: "place", over: []string{"model", "rules", "market", "solve"}},
	{name: "lifecycle", over: []string{"model", "rules", "market"}},
	{name: "disrupt", over: []string{"model", "rules", "solve", "market", "place", "lifecycle"}},
	{name: "", over: []string{"model", "market", "place", "lifecycle", "disrupt"}},
}

const (
	// maxMethods is how many methods a type of the planner has at most: what needs more is several things.
	maxMethods = 25
	// maxBackward is the share of arrows between files of one package, in percent, that may run against its reading order.
	maxBackward = 10
	// maxGlossary is how many lines the glossary in plan's package comment has at most.
	maxGlossary = 40
)

const planner = module + "/plan"

// floorPath is the import path of a floor.
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
		if !within(p, module) || within(p, planner) {
			continue
		}
		for _, imported := range imports.Imports {
			if within(imported, planner) && imported != planner {
				t.Errorf("%s imports %s: only the package plan is for others", p, imported)
			}
		}
	}
}

// floorSource is one package of the planner with its types.
type floorSource struct {
	path  string
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// file is the name of the file that a position is in.
func (f *floorSource) file(at token.Pos) string { return filepath.Base(f.fset.Position(at).Filename) }

func TestTypesHaveFewMethods(t *testing.T) {
	t.Parallel()
	for _, source := range floorSources(t) {
		methods := map[string]int{}
		for _, o := range source.info.Defs {
			f, ok := o.(*types.Func)
			if !ok || f.Signature().Recv() == nil {
				continue
			}
			recv := f.Signature().Recv().Type()
			if p, ok := recv.(*types.Pointer); ok {
				recv = p.Elem()
			}
			if named, ok := recv.(*types.Named); ok {
				methods[named.Obj().Name()]++
			}
		}
		for name, count := range methods {
			if count > maxMethods {
				t.Errorf("%s.%s has %d methods, more than %d", source.path, name, count, maxMethods)
			}
		}
	}
}

// TestFilesFollowTheReadingOrder holds each package to the order in which its comment says that its files are read: a file
// uses what comes before it. What runs against that makes two files one subject.
func TestFilesFollowTheReadingOrder(t *testing.T) {
	t.Parallel()
	for _, source := range floorSources(t) {
		order := source.readingOrder(t)
		arrows := source.arrows()
		back := against(arrows, order)
		t.Logf("%s: %d of %d arrows run back", source.path, len(back), len(arrows))
		if 100*len(back) > maxBackward*len(arrows) {
			better := bestOrder(arrows, order)
			t.Errorf("%s: %d of %d arrows run against the reading order:\n\t%s\na better order: %s\nagainst which run\n\t%s", source.path, len(back), len(arrows),
				strings.Join(back, "\n\t"), strings.ReplaceAll(strings.Join(better, " "), ".go", ""), strings.Join(against(arrows, better), "\n\t"))
		}
	}
}

// against are the arrows that run against an order.
func against(arrows map[[2]string]bool, order []string) []string {
	place := map[string]int{}
	for i, name := range order {
		place[name] = i
	}
	var back []string
	for a := range arrows {
		if place[a[0]] < place[a[1]] {
			back = append(back, a[0]+" → "+a[1])
		}
	}
	slices.Sort(back)
	return back
}

// readingOrder is what the package comment says after "Reading order:", without the endings.
func (f *floorSource) readingOrder(t *testing.T) []string {
	t.Helper()
	var names, order []string
	for _, file := range f.files {
		if len(file.Decls) > 0 {
			names = append(names, f.file(file.Package))
		}
		if file.Doc == nil {
			continue
		}
		_, list, found := strings.Cut(file.Doc.Text(), "Reading order:")
		if list, _, _ = strings.Cut(list, "\n\n"); found {
			for _, name := range strings.Fields(list) {
				order = append(order, strings.Trim(name, ",.")+".go")
			}
		}
	}
	if len(names) > 1 {
		missing := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(order, n) })
		gone := slices.DeleteFunc(slices.Clone(order), func(n string) bool { return slices.Contains(names, n) })
		if len(missing)+len(gone) > 0 {
			t.Errorf("%s: its comment's \"Reading order:\" misses %v and names %v, which are not there", f.path, missing, gone)
			return append(order, missing...)
		}
	}
	return order
}

// arrows are the pairs of files of which the first uses a function, method, type, variable or constant of the second.
func (f *floorSource) arrows() map[[2]string]bool {
	arrows := map[[2]string]bool{}
	for id, o := range f.info.Uses {
		if o.Pkg() == nil || o.Pkg().Path() != f.path {
			continue
		}
		method, isFunc := o.(*types.Func)
		if o.Parent() != o.Pkg().Scope() && !(isFunc && method.Signature().Recv() != nil) {
			continue
		}
		if from, to := f.file(id.Pos()), f.file(o.Pos()); from != to {
			arrows[[2]string{from, to}] = true
		}
	}
	return arrows
}

// bestOrder looks for an order with fewer arrows against it, by moving one file at a time.
func bestOrder(arrows map[[2]string]bool, order []string) []string {
	best := slices.Clone(order)
	for least, better := len(against(arrows, best)), true; better; {
		better = false
		for from := range best {
			for to := range best {
				next := slices.Clone(best)
				name := next[from]
				next = slices.Insert(slices.Delete(next, from, from+1), to, name)
				if n := len(against(arrows, next)); n < least {
					best, least, better = next, n, true
				}
			}
		}
	}
	return best
}

// TestGlossary holds the planner to one short list of its words.
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
	for _, source := range floorSources(t) {
		for _, o := range source.info.Defs {
			if o != nil {
				words[strings.ToLower(o.Name())] = true
			}
		}
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

// floorSources reads and checks the planner's packages, test files left out.
func floorSources(t *testing.T) []*floorSource {
	t.Helper()
	root := moduleRoot(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export", "./plan/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports, sources := map[string]string{}, map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read go list's answer: %v", err)
		}
		exports[p.ImportPath] = p.Export
		if within(p.ImportPath, planner) {
			for _, name := range p.GoFiles {
				sources[p.ImportPath] = append(sources[p.ImportPath], filepath.Join(p.Dir, name))
			}
		}
	}
	var found []*floorSource
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		f := &floorSource{path: path, fset: token.NewFileSet(), info: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
		for _, name := range sources[path] {
			file, err := parser.ParseFile(f.fset, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			f.files = append(f.files, file)
		}
		lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
		config := types.Config{Importer: importer.ForCompiler(f.fset, "gc", lookup)}
		if _, err := config.Check(path, f.fset, f.files, f.info); err != nil {
			t.Fatal(err)
		}
		found = append(found, f)
	}
	return found
}
