package deploy_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/aws.md instead of comparing it")

const (
	awsDoc = "../docs/aws.md"
	// generatedBelow separates what people write in docs/aws.md from what this test writes.
	generatedBelow = "<!-- Below here: go test ./deploy -run TestAWSDoc -update -->\n"
)

// TestAWSDoc holds docs/aws.md to the calls, policies, request buckets and error codes of today.
func TestAWSDoc(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile(awsDoc)
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(have), generatedBelow)
	if !found {
		t.Fatalf("%s does not have the line %q", awsDoc, generatedBelow)
	}
	want := text + generatedBelow + callsTable(t) + statementsTable(t) + errorsTable(t)
	if *update {
		if err := os.WriteFile(awsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, string(have)); diff != "" {
		t.Errorf("%s is stale, run go test ./deploy -run TestAWSDoc -update (-want +got):\n%s", awsDoc, diff)
	}
}

// callsTable has a row for each action that is called or implied, with where it is called and what allows it.
func callsTable(t *testing.T) string {
	called := awsOperations(t, "../cloud/aws")
	allowedBy := map[string][]string{}
	for _, name := range controllerPolicies {
		for _, s := range readPolicy(t, name).Statement {
			for _, action := range s.Action {
				allowedBy[action] = append(allowedBy[action], fmt.Sprintf("`%s`/%s", name, s.Sid))
			}
		}
	}
	actions := maps.Clone(called)
	for action := range implied {
		actions[action] = cmp.Or(actions[action], "")
	}
	var b strings.Builder
	b.WriteString("\n## Calls\n\n| action | called in `cloud/aws`, or why it is needed | allowed by |\n|---|---|---|\n")
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		where := implied[action]
		if file := actions[action]; file != "" {
			where = "`" + filepath.Base(file) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", action, where, strings.Join(allowedBy[action], ", "))
	}
	return b.String()
}

// statementsTable has a row for each statement: what it is limited to.
func statementsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("\n## Statements\n\n| statement | resources | conditions |\n|---|---|---|\n")
	for _, name := range controllerPolicies {
		for _, s := range readPolicy(t, name).Statement {
			var conditions []string
			for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
				for _, key := range slices.Sorted(maps.Keys(s.Condition[operator])) {
					conditions = append(conditions, fmt.Sprintf("`%s %s %s`", operator, key, strings.Join(s.Condition[operator][key], ", ")))
				}
			}
			resources := make([]string, 0, len(s.Resource))
			for _, resource := range s.Resource {
				resources = append(resources, "`"+resource+"`")
			}
			fmt.Fprintf(&b, "| `%s`/%s | %s | %s |\n", name, s.Sid, strings.Join(resources, "<br>"), strings.Join(conditions, "<br>"))
		}
	}
	return b.String()
}

// errorsTable reads the two tables of cloud/aws/errors.go: codes with a kind, and codes of missing capacity.
func errorsTable(t *testing.T) string {
	file, err := parser.ParseFile(token.NewFileSet(), "../cloud/aws/errors.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	rows, constants := map[string][2]string{}, map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == 1 && len(spec.Values) == 1 {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				constants[spec.Names[0].Name] = literal(t, value)
			}
		}
		return true
	})
	named := func(e ast.Expr) string {
		if name, ok := e.(*ast.Ident); ok {
			return constants[name.Name]
		}
		return literal(t, e)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		table, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, element := range table.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch value := pair.Value.(type) {
			case *ast.CompositeLit: // of verdicts: a kind and a reason
				if kind, ok := value.Elts[0].(*ast.SelectorExpr); ok && len(value.Elts) == 2 {
					rows[literal(t, pair.Key)] = [2]string{kind.Sel.Name, literal(t, value.Elts[1])}
				}
			case *ast.BasicLit, *ast.Ident: // of capacityCodes: a reason
				if spec.Names[0].Name == "capacityCodes" {
					rows[named(pair.Key)] = [2]string{"InsufficientCapacity", named(value)}
				}
			}
		}
		return true
	})
	if len(rows) < 20 {
		t.Fatalf("only %d error codes found in errors.go: has its shape changed?", len(rows))
	}
	var b bytes.Buffer
	b.WriteString("\n## Errors\n\n| code | kind | reason |\n|---|---|---|\n")
	for _, code := range slices.SortedFunc(maps.Keys(rows), func(x, y string) int {
		return cmp.Or(cmp.Compare(rows[x][0], rows[y][0]), cmp.Compare(x, y))
	}) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, rows[code][0], rows[code][1])
	}
	return b.String()
}

// literal is the text of a string in Go source.
func literal(t *testing.T, of ast.Expr) string {
	t.Helper()
	basic, ok := of.(*ast.BasicLit)
	if !ok {
		t.Fatalf("errors.go: %T where a string was expected", of)
	}
	text, err := strconv.Unquote(basic.Value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
