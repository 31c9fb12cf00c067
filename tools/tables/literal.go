package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// figures is what a map literal holds: numbers by instance type, or by region and instance type.
type figures struct {
	types   map[string]float64
	regions map[string]map[string]float64
}

// literal reads a package variable that is a map literal of numbers, without compiling its package.
func literal(file, variable string) (figures, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return figures{}, err
	}
	var found *ast.CompositeLit
	ast.Inspect(parsed, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Names) == 1 && spec.Names[0].Name == variable && len(spec.Values) == 1 {
			found, _ = spec.Values[0].(*ast.CompositeLit)
		}
		return found == nil
	})
	if found == nil {
		return figures{}, fmt.Errorf("%s has no map %s", file, variable)
	}
	read := figures{types: map[string]float64{}, regions: map[string]map[string]float64{}}
	if err := read.entries(found, read.types); err != nil {
		return figures{}, fmt.Errorf("%s: %s: %w", file, variable, err)
	}
	return read, nil
}

// entries reads the entries of a literal into a map, and those of nested literals by region.
func (f *figures) entries(of *ast.CompositeLit, into map[string]float64) error {
	for _, element := range of.Elts {
		entry, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return fmt.Errorf("an element without a key: %T", element)
		}
		name, ok := entry.Key.(*ast.BasicLit)
		if !ok {
			return fmt.Errorf("a key that is no literal: %T", entry.Key)
		}
		key, err := strconv.Unquote(name.Value)
		if err != nil {
			return fmt.Errorf("key %s: %w", name.Value, err)
		}
		switch value := entry.Value.(type) {
		case *ast.CompositeLit:
			f.regions[key] = map[string]float64{}
			err = f.entries(value, f.regions[key])
		case *ast.BasicLit:
			into[key], err = strconv.ParseFloat(value.Value, 64)
		default:
			err = fmt.Errorf("%s has a value that is no number: %T", key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
