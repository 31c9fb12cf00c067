// Command gen writes what is generated from the Go types under api/: the deep copies beside the types, and the
// CustomResourceDefinitions in deploy/crds. It runs the generators of controller-gen in this process and then adds what
// their markers cannot say (see refine.go). With -check it writes nothing and fails if a file is missing, stale or
// left over.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// crdDir is where the definitions go, relative to the root of the repository.
const crdDir = "deploy/crds"

func main() {
	root := flag.String("root", ".", "root of the repository")
	check := flag.Bool("check", false, "compare with the files that are there instead of writing them")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v\n", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	// The package loader resolves ./api/... against the working directory.
	if err := os.Chdir(root); err != nil {
		return err
	}
	files, err := generate()
	if err != nil {
		return err
	}
	existing, err := filepath.Glob(filepath.Join(crdDir, "*.yaml"))
	if err != nil {
		return err
	}
	if check {
		return compare(files, existing)
	}
	return write(files, existing)
}

// generate returns the content of every generated file by its path.
func generate() (artifacts, error) {
	var (
		copies      genall.Generator = deepcopy.Generator{}
		definitions genall.Generator = crd.Generator{OmitToolVersion: new(true)}
	)
	runtime, err := genall.Generators{&copies, &definitions}.ForRoots("./api/...")
	if err != nil {
		return nil, fmt.Errorf("loading ./api/...: %w", err)
	}
	files := artifacts{}
	runtime.OutputRules = genall.OutputRules{Default: files}
	if failed := runtime.Run(); failed {
		return nil, errors.New("controller-gen reported errors")
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		refined, err := refine(files[path].Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files[path] = bytes.NewBuffer(refined)
	}
	return files, nil
}

// artifacts collects generated files in memory, by path relative to the root. It is a genall.OutputRule.
type artifacts map[string]*bytes.Buffer

// Open returns where a generator writes an artifact: code goes beside its package, everything else into crdDir.
func (a artifacts) Open(pkg *loader.Package, path string) (io.WriteCloser, error) {
	dir := crdDir
	if pkg != nil {
		if len(pkg.CompiledGoFiles) == 0 {
			return nil, fmt.Errorf("package %s has no Go files", pkg.ID)
		}
		root, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		if dir, err = filepath.Rel(root, filepath.Dir(pkg.CompiledGoFiles[0])); err != nil {
			return nil, err
		}
	}
	buffer := &bytes.Buffer{}
	a[filepath.Join(dir, path)] = buffer
	return nopCloser{buffer}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// write writes the files to disk and removes definitions that are no longer generated.
func write(files artifacts, existing []string) error {
	if err := os.MkdirAll(crdDir, 0o755); err != nil {
		return err
	}
	for path, content := range files {
		if current, err := os.ReadFile(path); err == nil && bytes.Equal(current, content.Bytes()) {
			continue
		}
		if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	for _, path := range existing {
		if _, ok := files[path]; ok {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// compare returns an error that names every file that differs from what is generated.
func compare(files artifacts, existing []string) error {
	var stale []string
	for path, content := range files {
		current, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			stale = append(stale, path+" (missing)")
		case err != nil:
			return err
		case !bytes.Equal(current, content.Bytes()):
			stale = append(stale, path)
		}
	}
	for _, path := range existing {
		if _, ok := files[path]; !ok {
			stale = append(stale, path+" (left over)")
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	return fmt.Errorf("generated files are stale, run `make generate`:\n  %s", strings.Join(stale, "\n  "))
}
