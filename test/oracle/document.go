package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Document is a call without what must differ between two controllers: values by path. A path names a list's item by what
// identifies it, as in TagSpecification[instance].Tag[Name].
type Document map[string]string

// text returns the canonical text of a document.
func (d Document) text() string {
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(d)) {
		fmt.Fprintf(&out, "%s=%s\n", path, d[path])
	}
	return out.String()
}
