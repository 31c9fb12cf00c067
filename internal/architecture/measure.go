package architecture

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// Measures are the figures of one package.
type Measures struct {
	Files, Lines int
	// Widest is the type with the most methods, and Methods how many it has.
	Widest  string
	Methods int
	// Arrows are pairs of files of which one uses the other; Back are those that run against the reading order, which is the
	// one that the package's comment declares, or else the best that was found.
	Arrows, Back int
	// Exported counts exported names: of functions, types, variables, constants and methods of exported types.
	Exported int
	// Undocumented are those of them without a comment of their own or of their group.
	Undocumented []string
	// MedianFunc and LongestFunc are lengths of functions in lines, and Longest is the longest one that is not generated.
	MedianFunc, LongestFunc int
	Longest                 string
}

// BackShare returns the share of arrows that run back, in percent.
func (m Measures) BackShare() int {
	if m.Arrows == 0 {
		return 0
	}
	return 100 * m.Back / m.Arrows
}

// Measure computes the figures of a package.
func (s *Source) Measure() Measures {
	m := Measures{Files: len(s.files)}
	arrows := s.arrows()
	m.Arrows, m.Back = len(arrows), len(against(arrows, s.readingOrder(arrows)))
	var lengths []int
	for _, file := range s.files {
		m.Lines += s.lines(file)
		generated := ast.IsGenerated(file)
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.GenDecl:
				m.names(d)
			case *ast.FuncDecl:
				length := s.fset.Position(d.End()).Line - s.fset.Position(d.Pos()).Line + 1
				lengths = append(lengths, length)
				if length > m.LongestFunc && !generated {
					m.LongestFunc, m.Longest = length, d.Name.Name
				}
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
					m.count(d.Name.Name, d.Doc)
				}
			}
		}
	}
	if slices.Sort(lengths); len(lengths) > 0 {
		m.MedianFunc = lengths[len(lengths)/2]
	}
	methods := s.methods()
	for name, count := range methods {
		if cmp.Or(cmp.Compare(count, m.Methods), cmp.Compare(m.Widest, name)) > 0 {
			m.Widest, m.Methods = name, count
		}
	}
	return m
}

// names counts the exported names of a declaration of types, variables or constants.
func (m *Measures) names(d *ast.GenDecl) {
	if d.Tok == token.IMPORT {
		return
	}
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				m.count(spec.Name.Name, spec.Doc, d.Doc)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					m.count(name.Name, spec.Doc, spec.Comment, d.Doc)
				}
			}
		}
	}
}

// count counts an exported name, given the comments that may document it.
func (m *Measures) count(name string, comments ...*ast.CommentGroup) {
	m.Exported++
	if !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
		m.Undocumented = append(m.Undocumented, name)
	}
}

// receiver returns the name of a method's receiver type.
func receiver(d *ast.FuncDecl) string {
	for at := d.Recv.List[0].Type; ; {
		switch t := at.(type) {
		case *ast.StarExpr:
			at = t.X
		case *ast.IndexExpr:
			at = t.X
		case *ast.IndexListExpr:
			at = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// methods counts the methods of each type.
func (s *Source) methods() map[string]int {
	methods := map[string]int{}
	for _, o := range s.info.Defs {
		f, ok := o.(*types.Func)
		if !ok || f.Signature().Recv() == nil {
			continue
		}
		recv := f.Signature().Recv().Type()
		if p, ok := recv.(*types.Pointer); ok {
			recv = p.Elem()
		}
		if named, ok := recv.(*types.Named); ok && !types.IsInterface(named) {
			methods[named.Obj().Name()]++
		}
	}
	return methods
}
