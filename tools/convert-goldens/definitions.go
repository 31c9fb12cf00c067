package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions are the released CustomResourceDefinitions of the older versions, by name, the oldest release first.
type definitions map[string][]apiextensionsv1.JSONSchemaProps

// older are the versions that are converted, by definition.
var older = map[string]string{
	"provisioners.karpenter.sh":          "v1alpha5",
	"awsnodetemplates.karpenter.k8s.aws": "v1alpha1",
	"nodepools.karpenter.sh":             "v1beta1",
	"ec2nodeclasses.karpenter.k8s.aws":   "v1beta1",
}

// released reads the definitions of both releases.
func released() (definitions, error) {
	found := definitions{}
	for _, module := range []string{"github.com/aws/karpenter", "github.com/aws/karpenter-provider-aws"} {
		dir, err := sources(module)
		if err != nil {
			return nil, err
		}
		paths, err := filepath.Glob(filepath.Join(dir, "pkg", "apis", "crds", "*.yaml"))
		if err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s has no definitions: %w", module, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			var crd apiextensionsv1.CustomResourceDefinition
			if err := yaml.Unmarshal(data, &crd); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			for _, version := range crd.Spec.Versions {
				if older[crd.Name] == version.Name {
					found[crd.Name] = append(found[crd.Name], *version.Schema.OpenAPIV3Schema)
				}
			}
		}
	}
	return found, nil
}

// sources returns the directory of a module's sources.
func sources(module string) (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// complete gives an object the defaults of the oldest release that has its kind, as the API server does.
func (d definitions) complete(name string, object map[string]any) error {
	return fill(d[name][0].Properties["spec"], object["spec"])
}

func fill(schema apiextensionsv1.JSONSchemaProps, value any) error {
	switch v := value.(type) {
	case map[string]any:
		for name, property := range schema.Properties {
			if _, there := v[name]; !there && property.Default != nil {
				var value any
				if err := json.Unmarshal(property.Default.Raw, &value); err != nil {
					return fmt.Errorf("default of %s: %w", name, err)
				}
				v[name] = value
			}
			if err := fill(property, v[name]); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if schema.Items != nil && schema.Items.Schema != nil {
				if err := fill(*schema.Items.Schema, item); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fields lists the paths of all fields of the specs, by definition. "[]" stands for the items of a list. What is below a map
// with free keys is not a field.
func (d definitions) fields() map[string][]string {
	all := map[string][]string{}
	for name, versions := range d {
		paths := map[string]bool{}
		for _, schema := range versions {
			walk(schema.Properties["spec"], "spec", paths)
		}
		all[name] = slices.Sorted(maps.Keys(paths))
	}
	return all
}

func walk(schema apiextensionsv1.JSONSchemaProps, path string, paths map[string]bool) {
	for name, property := range schema.Properties {
		at := path + "." + name
		paths[at] = true
		walk(property, at, paths)
		if property.Items != nil && property.Items.Schema != nil {
			walk(*property.Items.Schema, at+"[]", paths)
		}
	}
}

// copyExamples copies the manifests that v0.32.10 has as examples.
func copyExamples(to string) error {
	module, err := sources("github.com/aws/karpenter")
	if err != nil {
		return err
	}
	examples := filepath.Join(module, "examples")
	return filepath.WalkDir(examples, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || strings.Contains(path, "workloads") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(strings.TrimPrefix(path, examples+string(filepath.Separator)), string(filepath.Separator), "-")
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	})
}
