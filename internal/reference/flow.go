package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"github.com/tenon-sh/tenon/internal/architecture"
)

// flow follows expressions of the product's code back to the constants that they can be: through variables, fields, parameters
// and results of functions. It knows of an object only what the code says literally; what it cannot follow, it says.
type flow struct {
	// named are the constants that packages declare.
	named map[string]*named
	// assigned are the expressions that variables, fields and parameters get; returned are those that functions return, by
	// result.
	assigned map[string][]place
	returned map[string][][]place
	// calls are the calls of a function, by the function; within are the functions, and the variables that hold functions,
	// that parameters belong to.
	calls  map[string][]call
	within map[string]parameter
	all    []call
	// literals are all composite literals.
	literals []literal
	// reasonsSet are the expressions that the field Reason of a condition gets by assignment.
	reasonsSet []place
}

// named is a constant with its name.
type named struct {
	// Package is the import path; Group is what is said about the group of constants that it is in.
	Package, Name, Value, Doc, Group string
	// file is the name of the file without its directory, and order counts within the package.
	file  string
	order int
	// of is the constant of another name whose value it has; empty if it has its own.
	of string
}

// place is an expression and the package that it is in.
type place struct {
	source *architecture.Source
	expr   ast.Expr
}

func (p place) String() string {
	at := p.source.Position(p.expr.Pos())
	return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(at.Filename)), filepath.Base(at.Filename), at.Line)
}

// call is a call with its arguments; one of a method expression has none.
type call struct {
	place
	fun  *types.Func
	args []ast.Expr
}

// parameter is the function that a parameter belongs to, and which one it is.
type parameter struct {
	function string
	index    int
}

type literal struct {
	place
	of *ast.CompositeLit
}

// newFlow reads the sources.
func newFlow(sources []*architecture.Source) *flow {
	f := &flow{named: map[string]*named{}, assigned: map[string][]place{}, returned: map[string][][]place{}, calls: map[string][]call{}, within: map[string]parameter{}}
	for _, s := range sources {
		order := 0
		for _, file := range s.Syntax() {
			for _, decl := range file.Decls {
				f.declare(s, decl, &order)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				f.note(s, n)
				return true
			})
		}
	}
	return f
}

// declare notes the constants of a declaration, and the results of a function.
func (f *flow) declare(s *architecture.Source, decl ast.Decl, order *int) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if object := s.Info().Defs[d.Name]; object != nil {
			f.function(s, key(s, object), d.Type, d.Body)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok || d.Tok != token.CONST {
				continue
			}
			own := says(values.Doc, values.Comment)
			if own == "" && !d.Lparen.IsValid() {
				own = says(d.Doc, nil)
			}
			for i, ident := range values.Names {
				object, ok := s.Info().Defs[ident].(*types.Const)
				if !ok || object.Val().Kind() != constant.String {
					continue
				}
				*order++
				f.named[key(s, object)] = &named{Package: s.Path, Name: ident.Name, Value: constant.StringVal(object.Val()), order: *order,
					of: aliased(s, values, i), Doc: own, Group: says(d.Doc, nil), file: filepath.Base(s.Position(ident.Pos()).Filename)}
			}
		}
	}
}

// function notes the parameters of a function and what it returns.
func (f *flow) function(s *architecture.Source, name string, of *ast.FuncType, body *ast.BlockStmt) {
	index := 0
	for _, field := range of.Params.List {
		for _, ident := range field.Names {
			if object := s.Info().Defs[ident]; object != nil {
				f.within[key(s, object)] = parameter{name, index}
			}
			index++
		}
		if len(field.Names) == 0 {
			index++
		}
	}
	if body == nil {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch r := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			for i, result := range r.Results {
				for len(f.returned[name]) <= i {
					f.returned[name] = append(f.returned[name], nil)
				}
				f.returned[name][i] = append(f.returned[name][i], place{s, result})
			}
		}
		return true
	})
}

// note notes what a piece of syntax assigns or calls.
func (f *flow) note(s *architecture.Source, n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				f.assign(s, left, n.Rhs[i])
			} else if c, ok := ast.Unparen(n.Rhs[0]).(*ast.CallExpr); ok {
				f.assign(s, left, &result{c, i})
			}
		}
	case *ast.ValueSpec:
		for i, ident := range n.Names {
			if i < len(n.Values) {
				f.assign(s, ident, n.Values[i])
			}
		}
	case *ast.CompositeLit:
		f.literals = append(f.literals, literal{place: place{s, n}, of: n})
		f.fields(s, n)
	case *ast.CallExpr:
		c := call{place: place{s, n}, args: n.Args}
		object := used(s, n.Fun)
		c.fun, _ = object.(*types.Func)
		if object != nil {
			f.calls[key(s, object)] = append(f.calls[key(s, object)], c)
		}
		f.all = append(f.all, c)
	}
}

// result is one of several results of a call.
type result struct {
	*ast.CallExpr
	index int
}

// assign notes that a variable or a field gets a value.
func (f *flow) assign(s *architecture.Source, to, value ast.Expr) {
	object := used(s, to)
	if object == nil {
		return
	}
	name := key(s, object)
	f.assigned[name] = append(f.assigned[name], place{s, value})
	if reasonOf(s, to, "apis/meta/v1.Condition") {
		f.reasonsSet = append(f.reasonsSet, place{s, value})
	}
	if function, ok := ast.Unparen(value).(*ast.FuncLit); ok {
		f.function(s, name, function.Type, function.Body)
	}
}

// fields notes what the fields of a composite literal get.
func (f *flow) fields(s *architecture.Source, of *ast.CompositeLit) {
	structure, _ := types.Unalias(typeOf(s, of)).Underlying().(*types.Struct)
	for i, element := range of.Elts {
		pair, keyed := element.(*ast.KeyValueExpr)
		switch {
		case keyed:
			if ident, ok := pair.Key.(*ast.Ident); ok && structure != nil {
				f.assign(s, ident, pair.Value)
			}
		case structure != nil:
			name := key(s, structure.Field(i))
			f.assigned[name] = append(f.assigned[name], place{s, element})
		}
	}
}

// constants returns the named constants that an expression can be, and the expressions that it cannot follow or that are
// constants without a name.
func (f *flow) constants(p place) (found []*named, open []place) {
	f.follow(p, map[string]bool{}, &found, &open)
	return found, open
}

func (f *flow) follow(p place, seen map[string]bool, found *[]*named, open *[]place) {
	expr := ast.Unparen(p.expr)
	all := func(places []place) {
		for _, each := range places {
			f.follow(each, seen, found, open)
		}
	}
	if several, ok := expr.(*result); ok {
		if object := used(p.source, several.Fun); object != nil && len(f.returned[key(p.source, object)]) > several.index {
			all(f.returned[key(p.source, object)][several.index])
			return
		}
		*open = append(*open, place{p.source, several.CallExpr})
		return
	}
	if converted, ok := expr.(*ast.CallExpr); ok && p.source.Info().Types[converted.Fun].IsType() {
		f.follow(place{p.source, converted.Args[0]}, seen, found, open)
		return
	}
	object := used(p.source, expr)
	value := p.source.Info().Types[expr].Value
	switch {
	case object != nil && f.named[key(p.source, object)] != nil:
		constant := f.named[key(p.source, object)]
		for f.named[constant.of] != nil {
			constant = f.named[constant.of]
		}
		*found = append(*found, constant)
		return
	case object != nil && reasonOf(p.source, expr, "/cloud.Error"):
		*found = append(*found, errorReason)
		return
	case object != nil && ofCondition(p.source, expr): // its type as its reason, or the reason of another one
		return
	case value != nil && value.Kind() == constant.String && constant.StringVal(value) == "":
		return
	}
	if c, ok := expr.(*ast.CallExpr); ok {
		if object := used(p.source, c.Fun); object != nil && object.Pkg() != nil && object.Pkg().Path() == "cmp" && object.Name() == "Or" {
			for _, arg := range c.Args {
				f.follow(place{p.source, arg}, seen, found, open)
			}
			return
		}
		if object := used(p.source, c.Fun); object != nil && len(f.returned[key(p.source, object)]) == 1 {
			all(f.returned[key(p.source, object)][0])
			return
		}
	}
	if index, ok := expr.(*ast.IndexExpr); ok {
		if object := used(p.source, index.X); object != nil {
			for _, from := range f.assigned[key(p.source, object)] {
				if table, ok := from.expr.(*ast.CompositeLit); ok {
					for _, element := range table.Elts {
						if pair, ok := element.(*ast.KeyValueExpr); ok {
							f.follow(place{from.source, pair.Value}, seen, found, open)
						}
					}
					return
				}
			}
		}
	}
	if object == nil || value != nil {
		*open = append(*open, p)
		return
	}
	name := key(p.source, object)
	if seen[name] {
		return
	}
	seen[name] = true
	from := f.assigned[name]
	of, isParameter := f.within[name]
	if isParameter {
		for _, c := range f.calls[of.function] {
			if of.index < len(c.args) {
				from = append(from, place{c.source, c.args[of.index]})
			}
		}
	}
	if len(from) == 0 && !isParameter {
		*open = append(*open, p)
		return
	}
	all(from)
}

// errorReason stands for the reason of an error of the cloud, whatever it is.
var errorReason = &named{Name: "error"}

// reasonOf says whether an expression is the field Reason of a type.
func reasonOf(s *architecture.Source, expr ast.Expr, of string) bool {
	field, ok := expr.(*ast.SelectorExpr)
	return ok && field.Sel.Name == "Reason" && strings.HasSuffix(fmt.Sprint(typeOf(s, field.X)), of)
}

// ofCondition says whether an expression is the reason or the type of a condition.
func ofCondition(s *architecture.Source, expr ast.Expr) bool {
	field, ok := expr.(*ast.SelectorExpr)
	return ok && (field.Sel.Name == "Reason" || field.Sel.Name == "Type") && strings.HasSuffix(fmt.Sprint(typeOf(s, field.X)), "apis/meta/v1.Condition")
}

// aliased returns the constant that a constant is declared to be; empty if it has a value of its own.
func aliased(s *architecture.Source, values *ast.ValueSpec, i int) string {
	if i >= len(values.Values) {
		return ""
	}
	if other, ok := used(s, values.Values[i]).(*types.Const); ok {
		return key(s, other)
	}
	return ""
}

// used returns what an identifier or a selector stands for; nil if the expression is neither.
func used(s *architecture.Source, expr ast.Expr) types.Object {
	switch e := ast.Unparen(expr).(type) {
	case *ast.Ident:
		if object := s.Info().Uses[e]; object != nil {
			return object
		}
		return s.Info().Defs[e]
	case *ast.SelectorExpr:
		return s.Info().Uses[e.Sel]
	}
	return nil
}

func typeOf(s *architecture.Source, expr ast.Expr) types.Type { return s.Info().Types[expr].Type }

// key names an object, the same in every package: of what other packages declare, only the line is known.
func key(s *architecture.Source, object types.Object) string {
	if object.Pkg() != nil && object.Parent() == object.Pkg().Scope() {
		return object.Pkg().Path() + "." + object.Name()
	}
	at := s.Position(object.Pos())
	return fmt.Sprintf("%s:%d:%s", filepath.Base(filepath.Dir(at.Filename))+"/"+filepath.Base(at.Filename), at.Line, object.Name())
}
