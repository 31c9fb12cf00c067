package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The kinds of v1beta1 that have the same name in v1.
var (
	nodePoolKind  = schema.GroupVersionKind{Group: karpv1.Group, Version: "v1beta1", Kind: "NodePool"}
	nodeClaimKind = schema.GroupVersionKind{Group: karpv1.Group, Version: "v1beta1", Kind: "NodeClaim"}
)

// betaNodePool is a v1beta1 NodePool.
type betaNodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              betaNodePoolSpec `json:"spec"`
	Status            json.RawMessage  `json:"status"`
}

type betaNodePoolSpec struct {
	Template   betaTemplate        `json:"template"`
	Disruption betaDisruption      `json:"disruption"`
	Limits     corev1.ResourceList `json:"limits"`
	Weight     *int32              `json:"weight"`
}

type betaTemplate struct {
	Metadata nodeMetadata     `json:"metadata"`
	Spec     betaTemplateSpec `json:"spec"`
}

// nodeMetadata and nodeTaints are what all older versions say about the nodes of a pool in the same fields.
type nodeMetadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type nodeTaints struct {
	Taints        []corev1.Taint `json:"taints"`
	StartupTaints []corev1.Taint `json:"startupTaints"`
}

type betaTemplateSpec struct {
	nodeTaints   `json:",inline"`
	Requirements []betaRequirement `json:"requirements"`
	Resources    json.RawMessage   `json:"resources"`
	Kubelet      *kubelet          `json:"kubelet"`
	NodeClassRef *providerRef      `json:"nodeClassRef"`
}

// providerRef names the object that describes the provider.
type providerRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

type betaRequirement struct {
	corev1.NodeSelectorRequirement `json:",inline"`
	MinValues                      *int `json:"minValues"`
}

type betaDisruption struct {
	ConsolidateAfter    *karpv1.NillableDuration `json:"consolidateAfter"`
	ConsolidationPolicy string                   `json:"consolidationPolicy"`
	ExpireAfter         *karpv1.NillableDuration `json:"expireAfter"`
	Budgets             []betaBudget             `json:"budgets"`
}

type betaBudget struct {
	Nodes    string           `json:"nodes"`
	Schedule *string          `json:"schedule"`
	Duration *metav1.Duration `json:"duration"`
}

// newNodePool returns a v1 NodePool with nothing in it.
func newNodePool(metadata metav1.ObjectMeta) *karpv1.NodePool {
	return &karpv1.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool"}, ObjectMeta: metadata}
}

// nodePool converts a v1beta1 NodePool.
func (o *object) nodePool() {
	var old betaNodePool
	if !o.decode(&old) {
		return
	}
	const path = "spec.template.spec."
	from := &old.Spec.Template.Spec
	pool := newNodePool(o.metadata(&old.ObjectMeta))
	to := &pool.Spec.Template
	o.template(to, "spec.template.metadata", &old.Spec.Template.Metadata, "spec.template.spec", from.nodeTaints, from.Requirements)
	to.Spec.NodeClassRef = o.classRef(path+"nodeClassRef", from.NodeClassRef)
	pool.Spec.Disruption, to.Spec.ExpireAfter = o.disruption(&old.Spec.Disruption)
	pool.Spec.Limits, pool.Spec.Weight = karpv1.Limits(old.Spec.Limits), old.Spec.Weight
	if resources := string(from.Resources); resources != "" && resources != "{}" && resources != "null" {
		o.lost(path+"resources", "it had no effect in a NodePool: remove it")
	}
	o.pool, o.kubelet, o.kubeletField = pool, from.Kubelet, path+"kubelet"
}

// template fills in what all older versions say about the nodes of a pool. metadata and spec are the paths of its parts.
func (o *object) template(to *karpv1.NodeClaimTemplate, metadata string, old *nodeMetadata, spec string, taints nodeTaints, requirements []betaRequirement) {
	to.Labels = o.labels(metadata+".labels", old.Labels)
	to.Annotations = o.annotations(metadata+".annotations", old.Annotations)
	to.Spec.Taints, to.Spec.StartupTaints = taints.Taints, taints.StartupTaints
	to.Spec.Requirements = o.requirements(spec+".requirements", requirements)
}

// classRef completes the reference to a class: v1beta1 knew only one kind of it.
func (o *object) classRef(field string, old *providerRef) *karpv1.NodeClassReference {
	ref := &karpv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass"}
	if old == nil || old.Name == "" {
		o.fail(field+".name", "is missing: a v1 NodePool has to name the EC2NodeClass of its nodes")
		return ref
	}
	ref.Name = old.Name
	if old.Kind != "" {
		ref.Kind = old.Kind
	}
	if old.APIVersion != "" {
		ref.Group, _, _ = strings.Cut(old.APIVersion, "/")
	}
	return ref
}

// disruption converts what v1beta1 says about disruption. What it leaves out gets v1beta1's defaults.
func (o *object) disruption(old *betaDisruption) (karpv1.Disruption, karpv1.NillableDuration) {
	d := karpv1.Disruption{ConsolidationPolicy: karpv1.ConsolidationPolicy(old.ConsolidationPolicy)}
	switch after := old.ConsolidateAfter; old.ConsolidationPolicy {
	case "", "WhenUnderutilized":
		d.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized
		if after == nil || !after.IsNever() {
			d.ConsolidateAfter = duration("0s")
		}
		if after != nil && !after.IsNever() {
			o.lost("spec.disruption.consolidateAfter", "v1beta1 forbade it with WhenUnderutilized, and v1 begins at 0s: set spec.disruption.consolidateAfter if nodes shall wait")
		}
	case "WhenEmpty":
		if after == nil {
			o.fail("spec.disruption.consolidateAfter", "is missing: WhenEmpty needs it, write for example 30s")
			break
		}
		d.ConsolidateAfter = *after
	default:
		o.fail("spec.disruption.consolidationPolicy", "%q is neither WhenEmpty nor WhenUnderutilized", old.ConsolidationPolicy)
	}
	if old.Budgets != nil && len(old.Budgets) == 0 {
		// An empty list would be left out of the manifest, and the API server would put 10% in its place.
		o.changed("spec.disruption.budgets", "is now one budget of 100%%, which limits nothing either")
		d.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	}
	for _, b := range old.Budgets {
		if b.Nodes == "" {
			b.Nodes = "10%"
		}
		d.Budgets = append(d.Budgets, karpv1.Budget{Nodes: b.Nodes, Schedule: b.Schedule, Duration: b.Duration})
	}
	expires := duration("720h")
	if old.ExpireAfter != nil {
		expires = *old.ExpireAfter
	}
	if !expires.IsNever() {
		o.expires("spec.disruption.expireAfter")
	}
	return d, expires
}

// requirements converts the requirements of a template, without those that v1 refuses.
func (o *object) requirements(field string, old []betaRequirement) []karpv1.NodeSelectorRequirementWithMinValues {
	kept := []karpv1.NodeSelectorRequirementWithMinValues{}
	for i, r := range old {
		key := karpv1.NormalizedLabelKey(r.Key)
		if why := o.refuses(key); why != "" {
			o.lost(fmt.Sprintf("%s[%d]", field, i), "%s", why)
			continue
		}
		kept = append(kept, karpv1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: r.Operator, Values: r.Values, MinValues: r.MinValues})
	}
	return kept
}

// labels converts the labels of a template, without those that v1 refuses.
func (o *object) labels(field string, old map[string]string) map[string]string {
	kept := maps.Clone(old)
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if why := o.refuses(key); why != "" {
			o.lost(fmt.Sprintf("%s[%s]", field, key), "%s", why)
			delete(kept, key)
		}
	}
	return kept
}

// refuses says why a NodePool of v1 may not have a label, or returns "".
func (o *object) refuses(key string) string {
	switch key {
	case provisionerLabel, karpv1.NodePoolLabelKey:
		return fmt.Sprintf("every node of the pool carries %s=%s by itself: remove it", karpv1.NodePoolLabelKey, o.name)
	}
	if advice, old := oldNames[key]; old {
		return advice
	}
	if err := karpv1.RestrictedLabel(key); err != nil {
		return err.Error()
	}
	return ""
}

// duration returns a duration that is known to be one.
func duration(text string) karpv1.NillableDuration {
	d, err := karpv1.ParseNillableDuration(text)
	if err != nil {
		d = karpv1.NewNillableDuration(time.Duration(0))
	}
	return d
}

// expires says what has become of expiry.
func (o *object) expires(field string) {
	o.changed(field, "is now spec.template.spec.expireAfter. In v1 a node expires at once, outside budgets and before its replacement is there: annotate the NodePool %s=%s to have it replaced first, as before",
		karpv1.ExpirationAnnotationKey, karpv1.ExpirationGraceful)
}
