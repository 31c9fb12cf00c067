package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers are our top-level trees from the bottom to the top. A package imports only from its own tree and from lower
// layers.
var layers = [][]string{
	{"api"},
	{"cloud"},
	{"plan"},
	{"cluster"},
	{"workflows"},
	{"activities", "starter"},
	{"worker"},
	{"cmd"},
}

// providers are the packages of particular providers, and of their simulators.
var providers = []string{Module + "/api/aws", Module + "/cloud/aws", Module + "/cloud/ec2sim", Module + "/cloud/kwok"}

// bans are imports that are forbidden whatever the layer.
var bans = []struct {
	reason string
	// tree is the tree that the rule applies to, as a path below the module.
	tree string
	// reach forbids packages anywhere below the tree's imports, by path prefix.
	reach []string
	// direct forbids packages in our own files only. The standard library uses them for its own purposes, so it does not
	// matter whether they are reachable.
	direct []string
}{
	{
		reason: "a workflow replays: it may only reach the world through activities",
		tree:   "workflows",
		reach: []string{
			Module + "/activities", Module + "/cluster", Module + "/cloud/aws", Module + "/cloud/ec2sim",
			"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go",
		},
		direct: []string{"net", "net/http", "os", "os/exec", "syscall", "math/rand", "math/rand/v2", "crypto/rand"},
	},
	{
		reason: "what histories have kept must not change with the planner",
		tree:   "workflows",
		reach:  []string{Module + "/plan"},
	},
	{
		reason: "a plan is a pure function of a snapshot",
		tree:   "plan",
		reach: []string{
			"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go",
			"go.temporal.io", "google.golang.org/grpc", Module + "/cloud/aws", Module + "/cloud/ec2sim",
		},
		// math/rand/v2 is allowed: a generator with a fixed seed is as pure as a table.
		direct: []string{
			"net", "net/http", "os", "os/exec", "io/fs", "io/ioutil", "syscall", "database/sql", "log", "log/slog",
			"math/rand", "crypto/rand", "go.uber.org/zap",
		},
	},
	{
		reason: "the contract of a provider knows no provider",
		tree:   "cloud",
		reach:  append(providers, Module+"/cloud/cloudtest"),
	},
	{
		reason: "the starter says what is to be done, and workflows have it done: what both need of a claim or a Node is in api or workflows",
		tree:   "starter",
		reach:  []string{Module + "/activities"},
	},
	{
		reason: "a provider's words come from the provider (cloud.Kind)",
		tree:   "plan",
		reach:  providers,
	},
	{
		reason: "a provider's words come from the provider (cloud.Kind)",
		tree:   "cluster",
		reach:  providers,
	},
	{
		reason: "a provider's words come from the provider (cloud.Kind)",
		tree:   "workflows",
		reach:  providers,
	},
	{
		reason: "a provider's words come from the provider (cloud.Kind)",
		tree:   "activities",
		reach:  providers,
	},
	{
		reason: "a provider's words come from the provider (cloud.Kind)",
		tree:   "starter",
		reach:  providers,
	},
	{
		reason: "the tests of every provider know none",
		tree:   "cloud/cloudtest",
		reach:  providers,
	},
	{
		reason: "what only people read needs no workflow",
		tree:   "starter/status",
		reach:  []string{Module + "/workflows", "go.temporal.io"},
	},
	{
		reason: "production has no failpoints, simulator or laboratory: tenon-lab has",
		tree:   "cmd/tenon",
		reach:  []string{Module + "/internal/failpoint", Module + "/cloud/ec2sim", Module + "/lab", Module + "/test", Module + "/cmd/tenon-lab"},
	},
	{
		reason: "the resources are data",
		tree:   "api",
		reach:  []string{"k8s.io/client-go", "github.com/aws/aws-sdk-go-v2", "go.temporal.io"},
		direct: []string{"net", "net/http", "os", "os/exec"},
	},
}

// pkg is what `go list` says about one package.
type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	rank := map[string]int{}
	for i, layer := range layers {
		for _, tree := range layer {
			rank[tree] = i
		}
	}
	for path, p := range importGraph(t) {
		from, ours := strings.CutPrefix(path, Module+"/")
		if !ours {
			continue
		}
		fromTree, _, _ := strings.Cut(from, "/")
		fromRank, ranked := rank[fromTree]
		if !ranked {
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, Module+"/")
			if !ours {
				continue
			}
			toTree, _, _ := strings.Cut(to, "/")
			toRank, ranked := rank[toTree]
			if ranked && toTree != fromTree && toRank >= fromRank {
				t.Errorf("%s imports %s: imports point from cmd down to api, never up or sideways", from, to)
			}
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	t.Parallel()
	graph := importGraph(t)
	for _, ban := range bans {
		t.Run(ban.tree, func(t *testing.T) {
			t.Parallel()
			for path := range graph {
				if !within(path, Module+"/"+ban.tree) || !own(path, ban.tree) {
					continue
				}
				for _, imported := range graph[path].Imports {
					if slices.Contains(ban.direct, imported) {
						t.Errorf("%s imports %s: %s", path, imported, ban.reason)
					}
				}
				if trail := trailTo(graph, path, ban.reach); trail != nil {
					t.Errorf("%s reaches %s: %s\n\t%s", path, trail[len(trail)-1], ban.reason, strings.Join(trail, "\n\t→ "))
				}
			}
		})
	}
}

// own reports whether a package is subject to its tree's rule. In the cloud tree only the contract itself is; the rule keeps
// it apart from the providers and the simulator below it.
func own(path, tree string) bool { return tree != "cloud" || path == Module+"/cloud" }

func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

// trailTo returns a chain of imports from a package to the nearest one with a forbidden prefix, or nil.
func trailTo(graph map[string]pkg, from string, forbidden []string) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, imported := range graph[queue[0]].Imports {
			if _, seen := cameFrom[imported]; seen {
				continue
			}
			cameFrom[imported] = queue[0]
			if slices.ContainsFunc(forbidden, func(prefix string) bool { return within(imported, prefix) }) {
				var trail []string
				for at := imported; at != ""; at = cameFrom[at] {
					trail = append(trail, at)
				}
				slices.Reverse(trail)
				return trail
			}
			queue = append(queue, imported)
		}
	}
	return nil
}

// importGraph asks the go command for every package of the module and everything they import.
func importGraph(t *testing.T) map[string]pkg {
	t.Helper()
	root := moduleRoot(t)
	touchSources(t, root)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	graph := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return graph
		} else if err != nil {
			t.Fatalf("read go list's answer: %v", err)
		}
		graph[p.ImportPath] = p
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// touchSources reads every source file. The go command caches test results by the files that the test opened, which do not
// include those that `go list` opens. Without touchSources a stale success would be reported.
func touchSources(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case !d.IsDir() && filepath.Ext(path) == ".go":
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatalf("look at the sources: %v", err)
	}
}
