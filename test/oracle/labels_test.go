package oracle_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/oracle"
	"github.com/tenon-sh/tenon/test/world"
)

// TestEveryLabelHasARow compares the table of labels with those that Tenon knows, and checks that the scene of each row has
// NodePools or pods that require the label.
func TestEveryLabelHasARow(t *testing.T) {
	t.Parallel()
	required := labelsOfScenes(t)
	rows := map[string]int{}
	for _, row := range oracle.Labels {
		rows[row.Key]++
		switch {
		case karpv1.WellKnownLabel(row.Key) == (row.Mark != ""):
			t.Errorf("%s: NodePools can select it: %t", row.Key, karpv1.WellKnownLabel(row.Key))
		case row.Mark == "" && !required[row.Scene][row.Key]:
			t.Errorf("%s: the scene %q does not require it", row.Key, row.Scene)
		}
	}
	for key := range karpv1.WellKnownLabels() {
		if rows[key] != 1 {
			t.Errorf("%s has %d rows", key, rows[key])
		}
	}
	aliases := karpv1.DeprecatedLabelKeys()
	for key, label := range oracle.LabelAliases {
		if got := karpv1.NormalizedLabelKey(key); got != label {
			t.Errorf("%s means %s, not %s", key, got, label)
		}
		if !slices.Contains(aliases, key) {
			t.Errorf("%s is not known", key)
		}
	}
	if len(aliases) != len(oracle.LabelAliases) {
		t.Errorf("%d other names of labels are listed, %d known", len(oracle.LabelAliases), len(aliases))
	}
}

// labelsOfScenes returns the labels that the NodePools and the pods of each scene require.
func labelsOfScenes(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, scene := range slices.Concat(examples(t), ours(), oursIPv6()) {
		pods, _, _ := scene.pods(t)
		objects, err := world.Objects(scene.manifests + "\n---\n" + pods)
		if err != nil {
			t.Fatalf("%s: %v", scene.name, err)
		}
		keys := map[string]bool{}
		for _, object := range objects {
			switch object.GetKind() {
			case "NodePool":
				var pool karpv1.NodePool
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pool); err != nil {
					t.Fatalf("%s: %v", scene.name, err)
				}
				for _, requirement := range pool.Spec.Template.Spec.Requirements {
					keys[requirement.Key] = true
				}
				if pool.Spec.Template.Spec.NodeClassRef.Name != "" {
					keys[awsv1.LabelNodeClass] = true
				}
			case "Pod":
				selector, _ := object.Object["spec"].(map[string]any)["nodeSelector"].(map[string]any)
				for key := range selector {
					keys[key] = true
				}
			}
		}
		all[scene.name] = keys
	}
	return all
}
