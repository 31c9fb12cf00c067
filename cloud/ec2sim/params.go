package ec2sim

import (
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// params is a node of the tree formed by the dotted keys of the AWS Query protocols: "Filter.1.Name=vpc-id" is the leaf
// Name of the first item of Filter. A nil *params is an absent parameter; the reading methods accept it.
type params struct {
	value    string
	children map[string]*params
	read     bool // the handler has read it
}

func parseParams(form url.Values) *params {
	root := &params{}
	for key, values := range form {
		node := root
		for part := range strings.SplitSeq(key, ".") {
			if node.children == nil {
				node.children = map[string]*params{}
			}
			child := node.children[part]
			if child == nil {
				child = &params{}
				node.children[part] = child
			}
			node = child
		}
		if len(values) > 0 {
			node.value = values[0]
		}
	}
	return root
}

func (p *params) sub(key string) *params {
	if p == nil {
		return nil
	}
	child := p.children[key]
	if child != nil {
		child.read = true
	}
	return child
}

func (p *params) has(key string) bool { return p.sub(key) != nil }

func (p *params) str(key string) string {
	if c := p.sub(key); c != nil {
		return c.value
	}
	return ""
}

// items returns the numbered children of a list in order. IAM and STS put a "member" level in between, EC2 does not.
func (p *params) items(key string) []*params {
	list := p.sub(key)
	if list == nil {
		return nil
	}
	if member := list.sub("member"); member != nil {
		list = member
	}
	var numbers []int
	for k := range list.children {
		if n, err := strconv.Atoi(k); err == nil {
			numbers = append(numbers, n)
		}
	}
	sort.Ints(numbers)
	items := make([]*params, len(numbers))
	for i, n := range numbers {
		items[i] = list.sub(strconv.Itoa(n))
	}
	return items
}

func (p *params) strings(key string) []string {
	var values []string
	for _, item := range p.items(key) {
		values = append(values, item.value)
	}
	return values
}

// integer returns an integer parameter, or def if it is absent.
func (p *params) integer(key string, def int) (int, error) {
	text := p.str(key)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, invalidValue("Value (%s) for parameter %s is invalid. Expected an integer.", text, key)
	}
	return n, nil
}

// flag returns an optional boolean parameter, or nil.
func (p *params) flag(key string) *bool {
	text := p.str(key)
	if text == "" {
		return nil
	}
	b := text == "true"
	return &b
}

// canonical formats the tree in a unique way, without the named top-level keys, so that two requests are equal exactly if
// their canonical forms are.
func (p *params) canonical(without ...string) string {
	var lines []string
	var walk func(prefix string, node *params)
	walk = func(prefix string, node *params) {
		if len(node.children) == 0 || node.value != "" {
			lines = append(lines, prefix+"="+node.value)
		}
		for key, child := range node.children {
			if prefix == "" && slices.Contains(without, key) {
				continue
			}
			walk(prefix+"."+key, child)
		}
	}
	walk("", p)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// flat formats the tree with dotted keys again, as in the request.
func (p *params) flat() map[string]string {
	out := map[string]string{}
	var walk func(prefix string, node *params)
	walk = func(prefix string, node *params) {
		if prefix != "" && (node.value != "" || len(node.children) == 0) {
			out[prefix] = node.value
		}
		for key, child := range node.children {
			walk(strings.TrimPrefix(prefix+"."+key, "."), child)
		}
	}
	if p != nil {
		walk("", p)
	}
	return out
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
