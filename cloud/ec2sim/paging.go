package ec2sim

import (
	"encoding/base64"
	"slices"
	"sort"
	"strings"
)

const tokenPrefix = "after:"

// paginate cuts one page out of a listing. Tokens name the last item of the page before, so a listing that changes
// between two pages neither repeats nor skips what stayed. The items are sorted by key first; keys must be unique.
func paginate[T any](items []T, key func(T) string, token string, size int) (page []T, next string, err error) {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if token != "" {
		raw, err := base64.StdEncoding.DecodeString(token)
		after, ok := strings.CutPrefix(string(raw), tokenPrefix)
		if err != nil || !ok {
			return nil, "", invalidValue("Unable to parse pagination token")
		}
		items = items[sort.Search(len(items), func(i int) bool { return key(items[i]) > after }):]
	}
	if len(items) <= size {
		return items, "", nil
	}
	next = base64.StdEncoding.EncodeToString([]byte(tokenPrefix + key(items[size-1])))
	return items[:size], next, nil
}

// pageSize reads MaxResults within the bounds of a call; def is used where it is absent.
func pageSize(p *params, least, most, def int) (int, error) {
	size, err := p.integer("MaxResults", def)
	if err != nil {
		return 0, err
	}
	if p.has("MaxResults") && (size < least || size > most) {
		return 0, invalidValue("Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.", size, least, most)
	}
	return size, nil
}
