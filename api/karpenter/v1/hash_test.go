package v1_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestNodePoolHashIsKarpenters compares with the hashes that sigs.k8s.io/karpenter v1.14.1 gives the same manifests.
func TestNodePoolHashIsKarpenters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"nodepool-plain": "6821555240594823858",
		"nodepool-rich":  "16179229597672231414",
	} {
		got, err := readNodePool(t, name).Hash()
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s: hash %s, want %s", name, got, want)
		}
	}
}

func TestNodePoolHashChangesOnlyWithStaticFields(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		change func(*v1.NodePool)
		same   bool
	}{
		{"requirements are compared with labels, not by hash", func(p *v1.NodePool) {
			p.Spec.Template.Spec.Requirements = nil
		}, true},
		{"disruption is not part of the template", func(p *v1.NodePool) { p.Spec.Disruption = v1.Disruption{} }, true},
		{"weight is not part of the template", func(p *v1.NodePool) { p.Spec.Weight = ptr.To[int32](99) }, true},
		{"the order of taints does not matter", func(p *v1.NodePool) {
			taints := p.Spec.Template.Spec.Taints
			taints[0], taints[1] = taints[1], taints[0]
		}, true},
		{"a label changed", func(p *v1.NodePool) { p.Spec.Template.Labels["team"] = "data" }, false},
		{"an annotation changed", func(p *v1.NodePool) { p.Spec.Template.Annotations["example.com/owner"] = "data" }, false},
		{"a taint changed", func(p *v1.NodePool) { p.Spec.Template.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute }, false},
		{"a startup taint went", func(p *v1.NodePool) { p.Spec.Template.Spec.StartupTaints = nil }, false},
		{"another class", func(p *v1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "other" }, false},
		{"another lifetime", func(p *v1.NodePool) { p.Spec.Template.Spec.ExpireAfter = v1.NewNillableDuration(1) }, false},
		{"no longer a bound on drains", func(p *v1.NodePool) { p.Spec.Template.Spec.TerminationGracePeriod = nil }, false},
	} {
		pool := readNodePool(t, "nodepool-rich")
		before, err := pool.Hash()
		if err != nil {
			t.Fatal(err)
		}
		tc.change(pool)
		after, err := pool.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if same := before == after; same != tc.same {
			t.Errorf("%s: hash unchanged is %t, want %t", tc.reason, same, tc.same)
		}
	}
}

func readNodePool(t *testing.T, name string) *v1.NodePool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hash", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var pool v1.NodePool
	if err := yaml.UnmarshalStrict(data, &pool); err != nil {
		t.Fatal(err)
	}
	return &pool
}
