package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Source is one package with its syntax and types, test files left out.
type Source struct {
	// Path is the import path.
	Path string

	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// Sources reads and type-checks packages of the module, in the order of `go list`. The patterns are those of the go command,
// relative to root. Dependencies are built if they are not in its cache.
func Sources(root string, patterns ...string) ([]*Source, error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,DepOnly"}, patterns...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		DepOnly                 bool
	}
	var named []listed
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read go list's answer: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && len(p.GoFiles) > 0 {
			named = append(named, p)
		}
	}
	var sources []*Source
	for _, p := range named {
		s := &Source{Path: p.ImportPath, fset: token.NewFileSet(), info: &types.Info{
			Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				return nil, fmt.Errorf("parse %s: %w", p.ImportPath, err)
			}
			s.files = append(s.files, file)
		}
		lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
		config := types.Config{Importer: importer.ForCompiler(s.fset, "gc", lookup)}
		if _, err := config.Check(p.ImportPath, s.fset, s.files, s.info); err != nil {
			return nil, fmt.Errorf("check the types of %s: %w", p.ImportPath, err)
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// Syntax returns the files of the package.
func (s *Source) Syntax() []*ast.File { return s.files }

// Info returns what the names and expressions of the package stand for.
func (s *Source) Info() *types.Info { return s.info }

// Position returns where a node is. Objects of other packages are known by their lines only.
func (s *Source) Position(at token.Pos) token.Position { return s.fset.Position(at) }

// file returns the name of the file at a position.
func (s *Source) file(at token.Pos) string { return filepath.Base(s.fset.Position(at).Filename) }

// lines is how many lines a file has.
func (s *Source) lines(file *ast.File) int { return s.fset.File(file.Pos()).LineCount() }

// names are the files that declare something.
func (s *Source) names() []string {
	var names []string
	for _, file := range s.files {
		if len(file.Decls) > 0 {
			names = append(names, s.file(file.Package))
		}
	}
	return names
}

// defined returns the names of everything that the package declares, in lower case.
func (s *Source) defined() map[string]bool {
	words := map[string]bool{}
	for _, o := range s.info.Defs {
		if o != nil {
			words[strings.ToLower(o.Name())] = true
		}
	}
	return words
}
