package ec2sim

import (
	"encoding/base64"
	"slices"
	"sort"
	"strings"
)

const tokenPrefix = "after:"

// paginate returns one page of a listing. A token contains the last key of the previous page, so a listing that changes
// between two pages neither repeats nor skips items that stayed. The items are sorted by key first; keys must be unique.
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

// pageOf returns the page of a listing that a call requests. The page has MaxResults items, which must be between least
// and most, or most items if MaxResults is absent.
func pageOf[T any](p *params, items []T, least, most int, key func(T) string) (page []T, next string, err error) {
	size, err := p.integer("MaxResults", most)
	if err != nil {
		return nil, "", err
	}
	if p.has("MaxResults") && (size < least || size > most) {
		return nil, "", invalidValue("Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.", size, least, most)
	}
	return paginate(items, key, p.str("NextToken"), size)
}
