package oracle_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/test/world"
)

// notCompared are the fields of an EC2NodeClass that no scene uses, with the reason.
var notCompared = map[string]string{}

// TestEveryFieldIsInAScene checks that no field of an EC2NodeClass is left out by accident, such as one that a later version
// of Karpenter adds.
func TestEveryFieldIsInAScene(t *testing.T) {
	t.Parallel()
	played := map[string]bool{}
	for _, scene := range slices.Concat(examples(t), ours(), oursIPv6()) {
		objects, err := world.Objects(scene.manifests)
		if err != nil {
			t.Fatalf("%s: %v", scene.name, err)
		}
		for _, object := range objects {
			if object.GetKind() == "EC2NodeClass" {
				mark(played, "", object.Object["spec"])
			}
		}
	}
	fields := fieldsOf(reflect.TypeFor[awsv1.EC2NodeClassSpec](), "")
	for _, field := range fields {
		switch reason := notCompared[field]; {
		case !played[field] && reason == "":
			t.Errorf("spec.%s is in no scene, and no reason says why", field)
		case played[field] && reason != "":
			t.Errorf("spec.%s is in a scene, though it says: %s", field, reason)
		}
	}
	for field := range notCompared {
		if !slices.Contains(fields, field) {
			t.Errorf("there is no spec.%s", field)
		}
	}
	t.Logf("%d fields", len(fields))
}

// mark marks all paths in a value: fields of list items under the path of the list, keys of maps as if they were fields.
func mark(paths map[string]bool, at string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			mark(paths, strings.TrimPrefix(at+"."+name, "."), inner)
		}
	case []any:
		for _, inner := range value {
			mark(paths, at, inner)
		}
	}
	paths[at] = true
}

// fieldsOf returns the paths of all fields that have no fields of their own.
func fieldsOf(of reflect.Type, at string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[resource.Quantity]() || of == reflect.TypeFor[metav1.Duration]() {
		return []string{at}
	}
	var fields []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		fields = append(fields, fieldsOf(of.Field(i).Type, strings.TrimPrefix(at+"."+name, "."))...)
	}
	return fields
}
