package oracle_test

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/test/oracle"
	"github.com/tenon-sh/tenon/test/world"
)

// TestEveryFieldHasARow compares the table of fields with the definition of EC2NodeClass, so that no field is left out, such
// as one that a later version of Karpenter adds. A row whose field Tenon acts on names a scene, and the scene sets the field.
func TestEveryFieldHasARow(t *testing.T) {
	t.Parallel()
	fields, err := oracle.FieldPaths()
	if err != nil {
		t.Fatal(err)
	}
	set := fieldsOfScenes(t)
	rows := map[string]int{}
	for _, topic := range oracle.Fields {
		for _, row := range topic.Fields {
			rows[row.Path]++
			refused := row.Condition != "" && row.Reason != "" && len(row.Seen) == 0 && row.Scene == "" && row.Karpenter != ""
			switch {
			case !slices.Contains(fields, row.Path):
				t.Errorf("there is no field spec.%s", row.Path)
			case row.To == "":
				t.Errorf("spec.%s: the row does not say how it changes", row.Path)
			case refused:
				for name, paths := range set {
					if paths[row.Path] {
						t.Errorf("spec.%s is refused, and the scene %q sets it", row.Path, name)
					}
				}
			case len(row.Seen) == 0 || row.Condition != "" || row.Reason != "":
				t.Errorf("spec.%s is neither seen somewhere nor refused", row.Path)
			case set[row.Scene] == nil:
				t.Errorf("spec.%s: there is no scene %q", row.Path, row.Scene)
			case !set[row.Scene][row.Path]:
				t.Errorf("spec.%s: the scene %q does not set it", row.Path, row.Scene)
			}
		}
	}
	for _, field := range fields {
		if rows[field] != 1 {
			t.Errorf("spec.%s has %d rows", field, rows[field])
		}
	}
	for _, field := range oracle.LeftToUserData {
		if rows[field] == 0 {
			t.Errorf("there is no row of spec.%s", field)
		}
	}
}

// fieldsOfScenes returns the fields of EC2NodeClass that each scene sets.
func fieldsOfScenes(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, scene := range slices.Concat(examples(t), ours(), oursIPv6()) {
		objects, err := world.Objects(scene.manifests)
		if err != nil {
			t.Fatalf("%s: %v", scene.name, err)
		}
		all[scene.name] = map[string]bool{}
		for _, object := range objects {
			spec, isMap := object.Object["spec"].(map[string]any)
			if object.GetKind() != "EC2NodeClass" || !isMap {
				continue
			}
			set, err := oracle.SetFields(spec)
			if err != nil {
				t.Fatalf("%s: %v", scene.name, err)
			}
			for path := range set {
				all[scene.name][path] = true
			}
		}
	}
	return all
}
