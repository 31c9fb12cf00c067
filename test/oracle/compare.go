package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is one field of a call in which the two controllers differ.
type Difference struct {
	Case, Action, Path string
	// Karpenter and Tenon are the values; absent if the call has no such parameter.
	Karpenter, Tenon string
}

// absent is the value of a missing parameter.
const absent = "(absent)"

// wholeCall is the path of a call that the other controller never makes.
const wholeCall = "(call)"

// String names the case, the call and the path, and what each of the two sent.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s %s: Karpenter %s, Tenon %s", d.Case, d.Action, d.Path, d.Karpenter, d.Tenon)
}

// Compare returns the differences between the calls of a case, in order. Every document of an action is compared with the
// most similar one of the other controller.
func Compare(name string, karpenter, tenon map[string][]Document) []Difference {
	var out []Difference
	actions := map[string]bool{}
	for _, calls := range []map[string][]Document{karpenter, tenon} {
		for action := range calls {
			actions[action] = true
		}
	}
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		theirs, ours := slices.Clone(karpenter[action]), slices.Clone(tenon[action])
		for len(theirs) > 0 && len(ours) > 0 {
			i, j := closest(theirs, ours)
			for _, path := range unlike(theirs[i], ours[j]) {
				out = append(out, Difference{name, action, path, valueOf(theirs[i], path), valueOf(ours[j], path)})
			}
			theirs, ours = slices.Delete(theirs, i, i+1), slices.Delete(ours, j, j+1)
		}
		for _, document := range theirs {
			out = append(out, Difference{name, action, wholeCall, summary(document), absent})
		}
		for _, document := range ours {
			out = append(out, Difference{name, action, wholeCall, absent, summary(document)})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Action, b.Action), strings.Compare(a.Path, b.Path), strings.Compare(a.Tenon, b.Tenon))
	})
	return out
}

// closest finds the two documents that differ least.
func closest(theirs, ours []Document) (i, j int) {
	least := -1
	for a := range theirs {
		for b := range ours {
			if n := len(unlike(theirs[a], ours[b])); least < 0 || n < least {
				least, i, j = n, a, b
			}
		}
	}
	return i, j
}

// unlike returns the paths whose values differ, sorted.
func unlike(a, b Document) []string {
	var paths []string
	for path := range a {
		if valueOf(a, path) != valueOf(b, path) {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func valueOf(d Document, path string) string {
	if value, ok := d[path]; ok {
		return value
	}
	return absent
}

// summary describes a call in a few words.
func summary(d Document) string {
	const most = 6
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(d)) {
		if !strings.Contains(path, "[") && len(parts) < most {
			parts = append(parts, path+"="+d[path])
		}
	}
	return strings.Join(parts, " ")
}
