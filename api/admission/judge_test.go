// Package admission holds what the API server accepts and refuses of the resources in package api. It judges manifests
// by the CustomResourceDefinitions in deploy/crds, with the API server's own code: the same defaulting, pruning,
// validation and CEL evaluation, in this process. Every CEL rule of every definition has a manifest here that breaks it.
package admission

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// judge decides about manifests of one kind as the API server would.
type judge struct {
	definition apiextensions.CustomResourceDefinition
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// judges returns the judge of every definition by kind. A definition the API server would refuse (a rule that does not
// compile, or one that may cost too much) fails the test.
func judges(t *testing.T) map[string]*judge {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "deploy", "crds", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no definitions found: %v", err)
	}
	byKind := map[string]*judge{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var versioned apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &versioned); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		j, err := newJudge(&versioned)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		byKind[versioned.Spec.Names.Kind] = j
	}
	return byKind
}

func newJudge(versioned *apiextensionsv1.CustomResourceDefinition) (*judge, error) {
	apiextensionsv1.SetDefaults_CustomResourceDefinition(versioned)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&versioned.Spec)
	j := &judge{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(versioned, &j.definition, nil); err != nil {
		return nil, err
	}
	version := j.definition.Spec.Versions[0].Name
	j.definition.Status.StoredVersions = []string{version}
	if errs := apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), &j.definition); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	properties, err := apiextensions.GetSchemaForVersion(&j.definition, version)
	if err != nil {
		return nil, err
	}
	if j.structural, err = schema.NewStructural(properties.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if j.schema, _, err = validation.NewSchemaValidator(properties.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	j.rules = cel.NewValidator(j.structural, true, celconfig.PerCallLimit)
	return j, nil
}

// admit fills in the defaults of an object and returns what is wrong with it. old is nil for a creation.
func (j *judge) admit(object, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(object, j.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, j.structural)
	defaulting.Default(object, j.structural)
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, object, j.schema)...)
	} else {
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, object, old, j.schema)...)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, j.structural, object)...)
	// Without this distinction a nil map would be an old object, and transition rules would run on creation.
	var oldObject any
	if old != nil {
		oldObject = old
	}
	ruleErrs, _ := j.rules.Validate(context.Background(), nil, j.structural, object, oldObject, celconfig.RuntimeCELCostBudget)
	return append(errs, ruleErrs...)
}

// messages returns the messages of all CEL rules of the definition, and how many rules have each.
func (j *judge) messages() map[string]int {
	found := map[string]int{}
	var walk func(*schema.Structural)
	walk = func(s *schema.Structural) {
		for _, rule := range s.XValidations {
			found[rule.Message]++
		}
		if s.Items != nil {
			walk(s.Items)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			walk(s.AdditionalProperties.Structural)
		}
		for name := range s.Properties {
			property := s.Properties[name]
			walk(&property)
		}
	}
	walk(j.structural)
	return found
}

// refusal is a manifest the API server has to refuse: a base with a JSON merge patch.
type refusal struct {
	reason string
	// patch is a merge patch, in YAML, that breaks the base.
	patch string
	// before, if not empty, makes this an update: it is the merge patch that gives the old object.
	before string
	// field is the field the error has to name, and message a part of what it has to say.
	field, message string
}

// cases are the refusals of every kind, each with the base manifest that the patches break.
func cases() []struct {
	kind, base string
	refusals   []refusal
} {
	return []struct {
		kind, base string
		refusals   []refusal
	}{
		{"NodePool", minimalNodePool, nodePoolRefusals()},
		{"NodeClaim", minimalNodeClaim, nodeClaimRefusals()},
		{"EC2NodeClass", minimalEC2NodeClass, ec2NodeClassRefusals()},
		{"CapacityBuffer", minimalCapacityBuffer, capacityBufferRefusals()},
		{"NodeOverlay", minimalNodeOverlay, nodeOverlayRefusals()},
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	all := judges(t)
	for _, c := range cases() {
		j := all[c.kind]
		if j == nil {
			t.Fatalf("there is no definition of %s", c.kind)
		}
		if errs := j.admit(patched(t, c.base, ""), nil); len(errs) > 0 {
			t.Fatalf("%s: the base is refused: %v", c.kind, errs.ToAggregate())
		}
		for _, r := range c.refusals {
			var old map[string]any
			if r.before != "" {
				old = patched(t, c.base, r.before)
				if errs := j.admit(old, nil); len(errs) > 0 {
					t.Errorf("%s: %s: the old object is refused: %v", c.kind, r.reason, errs.ToAggregate())
				}
			}
			errs := j.admit(patched(t, c.base, r.patch), old)
			if !slices.ContainsFunc(errs, func(err *field.Error) bool {
				return err.Field == r.field && strings.Contains(err.Error(), r.message)
			}) {
				t.Errorf("%s: %s: errors %v, want one about %s that says %s", c.kind, r.reason, errs.ToAggregate(), r.field, r.message)
			}
		}
	}
}

// TestEveryRuleIsBroken holds that the refusals cover every CEL rule of every definition.
func TestEveryRuleIsBroken(t *testing.T) {
	t.Parallel()
	all := judges(t)
	for _, c := range cases() {
		missing := all[c.kind].messages()
		for _, r := range c.refusals {
			for message := range missing {
				if strings.Contains(r.message, message) {
					missing[message]--
				}
			}
		}
		for _, message := range slices.Sorted(maps.Keys(missing)) {
			if missing[message] > 0 {
				t.Errorf("%s: %d more manifests have to break the rule with the message: %s", c.kind, missing[message], message)
			}
		}
	}
}

// patched returns a base manifest with a merge patch applied, both in YAML.
func patched(t *testing.T, base, patch string) map[string]any {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte(base))
	if err != nil {
		t.Fatal(err)
	}
	if patch != "" {
		change, err := yaml.YAMLToJSON([]byte(patch))
		if err != nil {
			t.Fatalf("%v in the patch:\n%s", err, patch)
		}
		if document, err = jsonpatch.MergePatch(document, change); err != nil {
			t.Fatal(err)
		}
	}
	return decode(t, document)
}

// decode reads JSON the way the API server does: whole numbers become int64.
func decode(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := utiljson.Unmarshal(document, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// set returns a merge patch that puts a JSON value at a dotted path.
func set(path, value string) string {
	keys := strings.Split(path, ".")
	for _, key := range slices.Backward(keys) {
		name, _ := json.Marshal(key)
		value = "{" + string(name) + ": " + value + "}"
	}
	return value
}
