package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// emitted is an Event as the code emits it: its reason, about which kinds of objects, and whether as a warning.
type emitted struct {
	reason *named
	kinds  map[string]bool
	types  map[string]bool
}

// replacedReason is a reason for which an Event has another one, Karpenter's, instead.
const replacedReason = "InsufficientCapacity"

// eventsDocument returns the document about Events.
func eventsDocument(f *flow, w words) (string, error) {
	events, err := f.events()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(`# Events

Every Event that Tenon emits. The table is made from the code: each call that emits an Event is followed back to the constant with its reason, and
what is said here is that constant's comment. A reason that is not such a constant fails ` + "`make check-generated`" + `. Where Karpenter has an Event for
the same thing, its reason is Karpenter's.

Events are for people and expire, usually after an hour. [Conditions](conditions.md) last; ` + "`tenon history`" + ` tells what happened long ago.
` + "`kubectl get events -A --field-selector source=tenon`" + ` lists them.

| reason | type | about | meaning |
|---|---|---|---|
`)
	for _, reason := range slices.Sorted(maps.Keys(events)) {
		e := events[reason]
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", reason, list(e.types), list(e.kinds), w.meaning(e.reason))
	}
	return text.String(), nil
}

func list(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), ", ") }

// events returns the Events that the code emits, by reason. An error names what cannot be followed, what is not a declared
// constant, and what has no comment.
func (f *flow) events() (map[string]*emitted, error) {
	found, wrong := map[string]*emitted{}, map[string]bool{}
	for _, c := range f.all {
		if !emits(c) {
			continue
		}
		for _, args := range f.expand([]place{{c.source, c.args[0]}, {c.source, c.args[1]}, {c.source, c.args[2]}}, 0) {
			kind := f.kind(args[0], 0)
			if kind == "" {
				continue
			}
			reasons, open := f.constants(args[2])
			for _, p := range open {
				wrong[p.String()+": the reason of an Event is no declared constant"] = true
			}
			for _, reason := range reasons {
				if reason == errorReason || reason.Value == replacedReason {
					continue
				}
				if reason.Doc == "" {
					wrong[fmt.Sprintf("%s: the reason %s of an Event has no comment", reason.file, reason.Name)] = true
				}
				e := found[reason.Value]
				if e == nil {
					e = &emitted{reason: reason, kinds: map[string]bool{}, types: map[string]bool{}}
					found[reason.Value] = e
				}
				e.kinds[kind] = true
				if severity := args[1].source.Info().Types[args[1].expr].Value; severity != nil {
					e.types[constant.StringVal(severity)] = true
				}
			}
		}
	}
	if len(wrong) > 0 {
		return nil, errors.New(strings.Join(slices.Sorted(maps.Keys(wrong)), "\n"))
	}
	return found, nil
}

// emits says whether a call hands an Event to a recorder.
func emits(c call) bool {
	if c.fun == nil || c.fun.Name() != "Event" && c.fun.Name() != "Eventf" || len(c.args) < 4 {
		return false
	}
	of := c.fun.Signature().Params()
	return of.Len() >= 4 && of.At(0).Type().String() == "k8s.io/apimachinery/pkg/runtime.Object"
}

// expand puts the arguments of all calls for what is a parameter of the function around it.
func (f *flow) expand(args []place, depth int) [][]place {
	function, indexes := "", make([]int, len(args))
	for i, arg := range args {
		indexes[i] = -1
		object := used(arg.source, arg.expr)
		if object == nil {
			continue
		}
		if of, is := f.within[key(arg.source, object)]; is && (function == "" || function == of.function) {
			function, indexes[i] = of.function, of.index
		}
	}
	if function == "" || len(f.calls[function]) == 0 || depth > 8 {
		return [][]place{args}
	}
	var all [][]place
	for _, c := range f.calls[function] {
		next := slices.Clone(args)
		for i, index := range indexes {
			if index >= 0 && index < len(c.args) {
				next[i] = place{c.source, c.args[index]}
			}
		}
		all = append(all, f.expand(next, depth+1)...)
	}
	return all
}

// kind returns the kind of the object that an Event is about; empty if there is none.
func (f *flow) kind(of place, depth int) string {
	expr := ast.Unparen(of.expr)
	if address, ok := expr.(*ast.UnaryExpr); ok {
		expr = address.X
	}
	if literal, ok := expr.(*ast.CompositeLit); ok {
		for _, element := range literal.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok && fmt.Sprint(pair.Key) == "Kind" {
				return strings.Trim(pair.Value.(*ast.BasicLit).Value, `"`)
			}
		}
	}
	t := types.Unalias(typeOf(of.source, of.expr))
	if basic, ok := t.(*types.Basic); ok && basic.Kind() == types.UntypedNil {
		return ""
	}
	if pointer, ok := t.(*types.Pointer); ok {
		if name := pointer.Elem().(*types.Named).Obj().Name(); name != "ObjectReference" {
			return name
		}
	}
	var from []place
	if c, ok := expr.(*ast.CallExpr); ok {
		if object := used(of.source, c.Fun); object != nil {
			from = slices.Concat(f.returned[key(of.source, object)]...)
		}
	} else if object := used(of.source, expr); object != nil {
		from = f.assigned[key(of.source, object)]
	}
	for _, each := range from {
		if depth < 8 {
			if kind := f.kind(each, depth+1); kind != "" {
				return kind
			}
		}
	}
	if named, ok := t.(*types.Named); ok {
		return named.Obj().Name()
	}
	return "object"
}
