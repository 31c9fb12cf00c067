// Package sbom checks the bill of materials that make check writes of bin/tenon. The generator and the schema are the CycloneDX
// project's own; the validator knows only JSON Schema.
package sbom

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	program  = "../../bin/tenon"
	document = "../../bin/tenon.cdx.json"
	// schema is the file of the version of CycloneDX that the document is in.
	schema = "bom-1.6.schema.json"
)

func TestBillFollowsTheSchema(t *testing.T) {
	t.Parallel()
	if err := compiled(t).Validate(parsed(t)); err != nil {
		t.Error(err)
	}
}

// TestSchemaRefuses shows that the schema, and the files that it refers to, are in force.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for reason, change := range map[string]func(bill map[string]any){
		"a document without a version of the specification": func(bill map[string]any) { delete(bill, "specVersion") },
		"a component without a name":                        func(bill map[string]any) { delete(bill["components"].([]any)[0].(map[string]any), "name") },
		"a licence that SPDX does not know": func(bill map[string]any) {
			bill["components"].([]any)[0].(map[string]any)["licenses"] = []any{map[string]any{"license": map[string]any{"id": "Mine-1.0"}}}
		},
	} {
		bill := parsed(t)
		change(bill.(map[string]any))
		if err := schema.Validate(bill); err == nil {
			t.Errorf("%s is accepted", reason)
		}
	}
}

// TestBillListsWhatIsInside compares the bill with what the go command has written into the program.
func TestBillListsWhatIsInside(t *testing.T) {
	t.Parallel()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatalf("make build has to come first: %v", err)
	}
	want := []string{"std " + info.GoVersion}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		want = append(want, module.Path+" "+module.Version)
	}
	var bill struct {
		Metadata struct {
			Component struct {
				Name, Version string
			}
		}
		Components []struct{ Name, Version, Purl string }
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range bill.Components {
		got = append(got, c.Name+" "+c.Version)
		if !strings.HasPrefix(c.Purl, "pkg:golang/"+strings.ToLower(c.Name)+"@") && !strings.HasPrefix(c.Purl, "pkg:golang/"+c.Name+"@") {
			t.Errorf("%s has the package URL %q", c.Name, c.Purl)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-in the program +in the bill):\n%s", diff)
	}
	if bill.Metadata.Component.Name != info.Main.Path || bill.Metadata.Component.Version == "" {
		t.Errorf("the bill is about %+v", bill.Metadata.Component)
	}
}

// compiled returns the schema as the CycloneDX project publishes it with its Go library.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("find the schema: %v", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(published{filepath.Join(strings.TrimSpace(string(out)), "schema")})
	// Go's regular expressions do not know all of ECMAScript's, which some patterns of the schema need.
	compiler.UseRegexpEngine(expression)
	found, err := compiler.Compile("http://cyclonedx.org/schema/" + schema)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// published loads the schemas of a directory, whatever their address.
type published struct{ dir string }

// Load implements jsonschema.URLLoader.
func (p published) Load(url string) (any, error) {
	name := path.Base(url)
	if name == "jsf-0.82.schema.json" {
		name = "jsf-0.82.schemax.json" // as the library's file is called
	}
	file, err := os.Open(filepath.Join(p.dir, name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return jsonschema.UnmarshalJSON(file)
}

// expression compiles a regular expression.
func expression(text string) (jsonschema.Regexp, error) {
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", text, err)
	}
	return compiled, nil
}

func parsed(t *testing.T) any {
	t.Helper()
	file, err := os.Open(document)
	if err != nil {
		t.Fatalf("make check writes it: %v", err)
	}
	defer func() { _ = file.Close() }()
	bill, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	return bill
}
