package main

import (
	"fmt"
	"regexp"
	"strings"
)

// own are the keys of Karpenter and Tenon; those of Kubernetes have documents of their own.
var own = regexp.MustCompile(`^(tenon\.sh|karpenter\.sh|karpenter\.k8s\.aws)/`)

// annotationsDocument returns the document about annotations, taints and finalizers.
func annotationsDocument(f *flow, w words) (string, error) {
	var text strings.Builder
	text.WriteString(`# Annotations, taints and finalizers

The keys that Tenon reads or writes, with the comments of their constants. [Labels](labels.md) have a page of their own. Those of
` + "`karpenter.sh`" + ` and ` + "`karpenter.k8s.aws`" + ` are Karpenter's and mean the same there; those of ` + "`tenon.sh`" + ` are Tenon's own. Where it is not said who
sets one, you do.
`)
	for _, section := range []struct {
		title string
		keep  func(name string) bool
	}{
		{"Annotations", func(name string) bool {
			return strings.HasSuffix(name, "AnnotationKey") || strings.HasSuffix(name, "Annotation")
		}},
		{"Taints", func(name string) bool { return strings.HasSuffix(name, "TaintKey") }},
		{"Finalizers", func(name string) bool { return strings.HasSuffix(name, "Finalizer") }},
	} {
		fmt.Fprintf(&text, "\n## %s\n\n", section.title)
		found := f.declared(func(n *named) bool { return section.keep(n.Name) && n.of == "" && own.MatchString(n.Value) })
		if len(found) == 0 {
			return "", fmt.Errorf("no %s are declared", strings.ToLower(section.title))
		}
		for _, n := range found {
			if n.Doc == "" || !strings.Contains(n.Doc, n.Name) {
				return "", fmt.Errorf("%s: the comment of %s does not say what %q is for", n.file, n.Name, n.Value)
			}
			fmt.Fprintf(&text, "* %s\n", bold(w.sentence(n), n.Value))
		}
	}
	return text.String(), nil
}
