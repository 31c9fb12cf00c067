package convert_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/manifest"
)

// inputs returns the old manifests in testdata.
func inputs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in testdata: %v", err)
	}
	return files
}

// encoded returns objects as documents.
func encoded(t *testing.T, objects []map[string]any) []manifest.Document {
	t.Helper()
	var docs []manifest.Document
	for _, object := range objects {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, manifest.Document{Place: "again", JSON: data})
	}
	return docs
}

// ineffective are fields that may be removed without any effect or note, with the reason.
var ineffective = map[string]string{
	"Provisioner spec.consolidation":                      "enabled: false is what a Provisioner without it means",
	"Provisioner spec.consolidation.enabled":              "likewise",
	"Provisioner spec.providerRef.apiVersion":             "an AWSNodeTemplate has one version",
	"Provisioner spec.providerRef.kind":                   "a providerRef without it means an AWSNodeTemplate",
	"AWSNodeTemplate spec.apiVersion":                     "it says the same as the object's own",
	"AWSNodeTemplate spec.kind":                           "likewise",
	"NodePool spec.template.spec.nodeClassRef.apiVersion": "a nodeClassRef without it means an EC2NodeClass",
	"NodePool spec.template.spec.nodeClassRef.kind":       "likewise",
}

// absent are fields of the released definitions that no manifest in testdata can have, with the reason.
var absent = map[string]string{
	"Provisioner spec.provider":           "it excludes spec.providerRef; inline.yaml has it, and it has the fields of an AWSNodeTemplate",
	"AWSNodeTemplate spec.launchTemplate": "it fails (TestNotes/LaunchTemplate)",
	"EC2NodeClass spec.instanceProfile":   "it excludes spec.role; classes.yaml has it, and is compared with what Karpenter makes of it",
}

// TestNoFieldIsLostInSilence takes each field of the released definitions of the old kinds away from a manifest that has them
// all. What comes out, or what is said, has to be different.
func TestNoFieldIsLostInSilence(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "karpenter", "fields.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string][]string
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{"provisioners.karpenter.sh": "Provisioner", "awsnodetemplates.karpenter.k8s.aws": "AWSNodeTemplate",
		"nodepools.karpenter.sh": "NodePool", "ec2nodeclasses.karpenter.k8s.aws": "EC2NodeClass"}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(fields))); diff != "" {
		t.Fatalf("kinds (-want +got):\n%s", diff)
	}
	for definition, kind := range kinds {
		file := filepath.Join("testdata", "beta.yaml")
		if kind == "Provisioner" || kind == "AWSNodeTemplate" {
			file = filepath.Join("testdata", "alpha.yaml")
		}
		whole := convert.Convert(without(t, file, kind, ""), convert.Options{Role: "fallback"})
		for _, field := range fields[definition] {
			id := kind + " " + field
			docs := without(t, file, kind, field)
			if docs == nil {
				if absent[id] == "" {
					t.Errorf("%s has no %s: add it", file, id)
				}
				continue
			}
			if absent[id] != "" {
				t.Errorf("%s is in %s, against the table", id, file)
			}
			less := convert.Convert(docs, convert.Options{Role: "fallback"})
			if silent := cmp.Equal(whole, less); silent != (ineffective[id] != "") {
				t.Errorf("%s: taking it away changes nothing and is not said: %v; want %v", id, silent, ineffective[id] != "")
			}
		}
	}
}

// without returns the documents of a file, those of a kind without a field; nil if none has the field.
func without(t *testing.T, file, kind, field string) []manifest.Document {
	t.Helper()
	docs, err := manifest.Documents([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := field == ""
	for i := range docs {
		var object map[string]any
		if err := json.Unmarshal(docs[i].JSON, &object); err != nil {
			t.Fatal(err)
		}
		if object["kind"] != kind || field == "" {
			continue
		}
		found = remove(object, strings.Split(field, ".")) || found
		if docs[i].JSON, err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		return nil
	}
	return docs
}

// remove deletes what is at a path, in every item of a list, and reports whether there was anything.
func remove(value any, path []string) bool {
	if items, ok := value.([]any); ok {
		found := false
		for _, item := range items {
			found = remove(item, path) || found
		}
		return found
	}
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	name := strings.TrimSuffix(path[0], "[]")
	if len(path) > 1 {
		return remove(object[name], path[1:])
	}
	_, found := object[name]
	delete(object, name)
	return found
}
