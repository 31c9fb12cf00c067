package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/deploy"
)

// schema is what is needed of the schema of a field in a custom resource definition.
type schema struct {
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
}

// specSchema returns the schema of an EC2NodeClass's specification.
func specSchema() (*schema, error) {
	definitions, err := deploy.CRDs()
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(definitions["karpenter.k8s.aws_ec2nodeclasses.yaml"], &definition); err != nil {
		return nil, fmt.Errorf("read the definition of EC2NodeClass: %w", err)
	}
	if len(definition.Spec.Versions) != 1 {
		return nil, errors.New("the definition of EC2NodeClass has not one version")
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if spec == nil || len(spec.Properties) == 0 {
		return nil, errors.New("the definition of EC2NodeClass has no specification")
	}
	return spec, nil
}

// FieldPaths returns the paths of all fields below spec of an EC2NodeClass that have no fields of their own, as Field.Path
// writes them, in alphabetical order. A map is one field, and so is a list of texts.
func FieldPaths() ([]string, error) {
	spec, err := specSchema()
	if err != nil {
		return nil, err
	}
	return spec.paths(""), nil
}

func (s *schema) paths(at string) []string {
	switch {
	case len(s.Properties) > 0:
		var paths []string
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			paths = append(paths, s.Properties[name].paths(strings.TrimPrefix(at+"."+name, "."))...)
		}
		return paths
	case s.Items != nil && len(s.Items.Properties) > 0:
		return s.Items.paths(at + "[]")
	}
	return []string{at}
}

// SetFields returns the values of the fields that a specification sets, by the path of the field and, within lists, by the
// numbers of the items.
func SetFields(spec map[string]any) (map[string]map[string]string, error) {
	known, err := specSchema()
	if err != nil {
		return nil, err
	}
	set := map[string]map[string]string{}
	return set, known.collect(spec, "", "", set)
}

func (s *schema) collect(value any, at, numbers string, into map[string]map[string]string) error {
	items, isList := value.([]any)
	fields, isObject := value.(map[string]any)
	switch {
	case isObject && len(s.Properties) > 0:
		for name, inner := range fields {
			if s.Properties[name] == nil {
				return fmt.Errorf("there is no field %s.%s", at, name)
			}
			if err := s.Properties[name].collect(inner, strings.TrimPrefix(at+"."+name, "."), numbers, into); err != nil {
				return err
			}
		}
	case isList && len(s.Items.Properties) > 0:
		for i, item := range items {
			if err := s.Items.collect(item, at+"[]", fmt.Sprintf("%s/%d", numbers, i), into); err != nil {
				return err
			}
		}
	default:
		if into[at] == nil {
			into[at] = map[string]string{}
		}
		into[at][numbers] = fmt.Sprint(value) // a map is printed with its keys sorted
	}
	return nil
}
