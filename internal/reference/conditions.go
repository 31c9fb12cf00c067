package main

import (
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// subjects are the resources by the code that writes their conditions: a package, or a file of one.
var subjects = map[string]string{
	"activities": "NodeClaim", "status/wish.go": "NodeClaim", "status/nodepool.go": "NodePool", "status/limits.go": "NodePool",
	"status/rollout.go": "NodePool", "status/window.go": "NodePool", "status/nodeoverlay.go": "NodeOverlay",
	"status/buffer.go": "CapacityBuffer", "status/nodeclass.go": "EC2NodeClass", "aws": "EC2NodeClass", "v1": "every resource",
}

// conditionTypes are the files of API packages that declare the types of a resource's conditions.
var conditionTypes = []struct{ resource, file string }{
	{"NodePool", "nodepool_status.go"}, {"NodeClaim", "nodeclaim_status.go"}, {"EC2NodeClass", "ec2nodeclass_status.go"},
	{"NodeOverlay", ""}, {"CapacityBuffer", "capacitybuffer_status.go"}, {"every resource", "conditions.go"},
}

// otherReasons says which reasons a condition has beside those that the code declares for it, by the place that cannot be
// followed.
var otherReasons = map[string]string{
	"status/nodepool.go": "The reason of `Paused` names what is paused, such as `DisruptionAndInterruption`, or `Observed`. " +
		"While the node class is not ready, `NodeClassReady` has its reason.",
	"status/limits.go": "The reason of `DisruptionLimited` names what is used up: `ClusterBudget`, `ClusterRate`, `Rate` (that of the NodePool), or several, such as `ClusterBudgetAndRate`.",
}

// conditionsDocument returns the document about conditions.
func conditionsDocument(f *flow, w words) (string, error) {
	reasons, withErrors, err := f.conditionReasons()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(`# Conditions

The conditions of the resources, and their reasons, from the constants in the code that sets them and those constants' comments. A condition that is
True has its own type as its reason, unless it is said otherwise here. ` + "`kubectl describe`" + ` shows them with a message that names the field or the object.
Where Karpenter has the condition, type, status and reason are Karpenter's.
`)
	for _, of := range conditionTypes {
		fmt.Fprintf(&text, "\n## %s\n\n", capitalized(of.resource))
		types := f.declared(func(n *named) bool {
			return n.file == of.file && strings.Contains(n.Package, "/api/") && strings.HasPrefix(n.Name, "Condition")
		})
		for _, n := range types {
			fmt.Fprintf(&text, "* %s\n", bold(w.sentence(n), n.Value))
		}
		if of.resource == "NodeOverlay" {
			text.WriteString("* **`ValidationSucceeded`** is False when the overlay does not apply, or not to everything that it names.\n")
		}
		if len(reasons[of.resource]) == 0 {
			continue
		}
		text.WriteString("\n| reason | meaning |\n|---|---|\n")
		for _, value := range slices.Sorted(maps.Keys(reasons[of.resource])) {
			fmt.Fprintf(&text, "| `%s` | %s |\n", value, w.meaning(reasons[of.resource][value]))
		}
		if withErrors[of.resource] {
			text.WriteString("\nWhere AWS has refused something, the reason is that of [its error](../aws.md#errors), and the message has AWS's words.\n")
		}
		if more := others(of.resource); more != "" {
			fmt.Fprintf(&text, "\n%s\n", more)
		}
	}
	return text.String(), nil
}

// others returns what is said about reasons of a resource that are no constants.
func others(resource string) string {
	var said []string
	for at, text := range otherReasons {
		if subjectOf(at) == resource && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

// bold sets the first mention of a value in bold type.
func bold(sentence, value string) string {
	return strings.Replace(sentence, "`"+value+"`", "**`"+value+"`**", 1)
}

// declared returns the constants for which keep is true, in the order of their declaration.
func (f *flow) declared(keep func(*named) bool) []*named {
	var found []*named
	for _, n := range f.named {
		if keep(n) {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b *named) int {
		if a.Package != b.Package {
			return strings.Compare(a.Package, b.Package)
		}
		return a.order - b.order
	})
	return found
}

// subjectOf returns the resource that code at a place writes conditions of; empty if that is not known.
func subjectOf(at string) string {
	at, _, _ = strings.Cut(at, ":")
	dir, _, _ := strings.Cut(at, "/")
	if subject := subjects[at]; subject != "" {
		return subject
	}
	return subjects[dir]
}

// conditionReasons returns the reasons of conditions by resource and by themselves.
func (f *flow) conditionReasons() (found map[string]map[string]*named, withErrors map[string]bool, err error) {
	found, withErrors = map[string]map[string]*named{}, map[string]bool{}
	wrong := map[string]bool{}
	note := func(sink place, value place) {
		if strings.HasPrefix(sink.String(), "clustermetrics/") { // copies for metrics, which nobody writes
			return
		}
		subject := subjectOf(sink.String())
		if subject == "" {
			wrong[sink.String()+": a condition of what?"] = true
			return
		}
		reasons, open := f.constants(value)
		for _, p := range open {
			at, _, _ := strings.Cut(p.String(), ":")
			if _, known := otherReasons[at]; !known {
				wrong[fmt.Sprintf("%s: the reason of a condition, set at %s, is no declared constant", p, sink)] = true
			}
		}
		for _, reason := range reasons {
			if reason == errorReason {
				withErrors[subject] = true
				continue
			}
			if reason.Doc == "" {
				wrong[fmt.Sprintf("%s: the reason %s of a condition has no comment", reason.file, reason.Name)] = true
			}
			if found[subject] == nil {
				found[subject] = map[string]*named{}
			}
			found[subject][reason.Value] = reason
		}
	}
	for _, l := range f.literals {
		if t := typeOf(l.source, l.of); t == nil || !strings.HasSuffix(t.String(), "apis/meta/v1.Condition") {
			continue
		}
		for _, element := range l.of.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok && fmt.Sprint(pair.Key) == "Reason" {
				note(l.place, place{l.source, pair.Value})
			}
		}
	}
	for _, p := range f.reasonsSet {
		note(p, p)
	}
	if len(wrong) > 0 {
		return nil, nil, errors.New(strings.Join(slices.Sorted(maps.Keys(wrong)), "\n"))
	}
	return found, withErrors, nil
}
