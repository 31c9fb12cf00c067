package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/deploy"
)

// Pools are the NodePools to plan with and the node classes they name.
type Pools struct {
	// NodePools are ordered by name. They count as Ready.
	NodePools []*karpv1.NodePool
	// Classes has the class of every pool, by name.
	Classes map[string]*awsv1.EC2NodeClass
	// Assumed are the names of classes that are not among the manifests.
	Assumed map[string]bool
	// Overlays are the NodeOverlays.
	Overlays []*karpv1alpha1.NodeOverlay
}

// WithPools returns the manifests with the NodePools of others instead of their own. All else in others, such as node
// classes, replaces own objects of the same kind and name.
func (m *Manifests) WithPools(others *Manifests) *Manifests {
	replaced := map[owner]bool{}
	for i := range others.objects {
		replaced[ownerOf(others.objects[i].place)] = true
	}
	merged := &Manifests{ignored: m.ignored, notes: slices.Concat(m.notes, others.notes)}
	for i := range m.objects {
		o := m.objects[i]
		if _, isPool := o.value.(*karpv1.NodePool); !isPool && !replaced[ownerOf(o.place)] {
			merged.objects = append(merged.objects, o)
		}
	}
	merged.objects = append(merged.objects, others.objects...)
	return merged
}

// poolsOf validates the pools and classes of the manifests and assumes defaults for those that are missing.
func poolsOf(objects []object) (Pools, []string, mistakes) {
	pools := Pools{Classes: map[string]*awsv1.EC2NodeClass{}, Assumed: map[string]bool{}}
	var notes []string
	var wrong mistakes
	refuse := func(at place, errs field.ErrorList) {
		for _, err := range errs {
			wrong = append(wrong, &mistake{place: at, field: err.Field, problem: err.ErrorBody()})
		}
	}
	for _, o := range only[*karpv1alpha1.NodeOverlay](objects) {
		refuse(o.place, o.value.Validate())
		pools.Overlays = append(pools.Overlays, o.value)
	}
	for _, o := range only[*awsv1.EC2NodeClass](objects) {
		refuse(o.place, o.value.Validate())
		pools.Classes[o.place.name] = o.value
	}
	for _, o := range only[*karpv1.NodePool](objects) {
		pool := o.value
		refuse(o.place, pool.Validate())
		ref := pool.Spec.Template.Spec.NodeClassRef
		switch {
		case ref == nil || ref.Name == "":
			wrong = append(wrong, &mistake{place: o.place, field: "spec.template.spec.nodeClassRef", problem: "is missing: write {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}"})
			continue
		case ref.Kind != "EC2NodeClass":
			wrong = append(wrong, &mistake{place: o.place, field: "spec.template.spec.nodeClassRef.kind", problem: fmt.Sprintf("%q is not supported: write EC2NodeClass", ref.Kind)})
			continue
		}
		pools.NodePools = append(pools.NodePools, pool)
	}
	if len(wrong) > 0 {
		return pools, notes, wrong
	}
	assumed := len(pools.NodePools) == 0
	if assumed {
		pool, err := defaultPool()
		if err != nil {
			return pools, notes, mistakes{{place: builtIn, problem: err.Error()}}
		}
		pools.NodePools = []*karpv1.NodePool{pool}
		notes = append(notes, "there is no NodePool: assuming one like Karpenter's first, without limits: on-demand, linux, amd64, instance categories c, m and r of generation 3 and later")
	}
	for _, pool := range pools.NodePools {
		name := pool.Spec.Template.Spec.NodeClassRef.Name
		if pools.Classes[name] == nil {
			class, err := defaultClass(name)
			if err != nil {
				return pools, notes, mistakes{{place: builtIn, problem: err.Error()}}
			}
			pools.Classes[name], pools.Assumed[name] = class, true
			if assumed {
				continue // the note on the pool covers it
			}
			notes = append(notes, fmt.Sprintf("EC2NodeClass %s is not among the manifests: assuming al2023@latest and the kubelet's defaults", name))
		}
	}
	for _, pool := range pools.NodePools {
		ready(pool)
	}
	slices.SortFunc(pools.NodePools, func(a, b *karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return pools, notes, wrong
}

// builtIn is the place of the defaults.
var builtIn = place{file: "built-in", document: 1}

// ready gives a pool the status it has once it can be used.
func ready(pool *karpv1.NodePool) {
	pool.Status.Conditions = []metav1.Condition{{
		Type: karpv1.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: karpv1.ReasonReady, ObservedGeneration: pool.Generation,
	}}
}

// defaultPool returns the example pool, which is like Karpenter's first, without its limits: a plan of what pods need must
// not end at a number that nobody chose.
func defaultPool() (*karpv1.NodePool, error) {
	data, err := deploy.DefaultNodePool("offline")
	if err != nil {
		return nil, err
	}
	pool := &karpv1.NodePool{}
	if err := yaml.UnmarshalStrict(data, pool); err != nil {
		return nil, fmt.Errorf("default NodePool: %w", err)
	}
	pool.Spec.Limits = nil
	return pool, nil
}

func defaultClass(name string) (*awsv1.EC2NodeClass, error) {
	data, err := deploy.DefaultNodeClass("offline")
	if err != nil {
		return nil, err
	}
	class := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict(data, class); err != nil {
		return nil, fmt.Errorf("default EC2NodeClass: %w", err)
	}
	class.Name = name
	return class, nil
}

// zones returns where the cluster is according to the manifests: the zones of the subnets of its classes, or the region of
// its nodes if no class has any. Both are empty if the manifests do not say.
func (c *Cluster) zones() (region string, zones []string) {
	found := map[string]bool{}
	for _, class := range c.Classes {
		for _, subnet := range class.Status.Subnets {
			found[subnet.Zone] = true
		}
	}
	zones = slices.Sorted(maps.Keys(found))
	if len(zones) > 0 {
		return zones[0][:max(0, len(zones[0])-1)], zones
	}
	for _, node := range c.Snapshot.Nodes {
		if region := node.Labels[corev1.LabelTopologyRegion]; region != "" {
			return region, nil
		}
	}
	return "", nil
}
