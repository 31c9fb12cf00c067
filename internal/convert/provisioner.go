package convert

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The kinds of v1alpha5.
var (
	provisionerKind = schema.GroupVersionKind{Group: karpv1.Group, Version: "v1alpha5", Kind: "Provisioner"}
	machineKind     = schema.GroupVersionKind{Group: karpv1.Group, Version: "v1alpha5", Kind: "Machine"}
)

// provisioner is a v1alpha5 Provisioner.
type provisioner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              provisionerSpec `json:"spec"`
	Status            json.RawMessage `json:"status"`
}

type provisionerSpec struct {
	nodeMetadata           `json:",inline"`
	nodeTaints             `json:",inline"`
	Requirements           []corev1.NodeSelectorRequirement `json:"requirements"`
	KubeletConfiguration   *alphaKubelet                    `json:"kubeletConfiguration"`
	Provider               json.RawMessage                  `json:"provider"`
	ProviderRef            *providerRef                     `json:"providerRef"`
	TTLSecondsAfterEmpty   *int64                           `json:"ttlSecondsAfterEmpty"`
	TTLSecondsUntilExpired *int64                           `json:"ttlSecondsUntilExpired"`
	Limits                 *provisionerLimits               `json:"limits"`
	Weight                 *int32                           `json:"weight"`
	Consolidation          *provisionerConsolidation        `json:"consolidation"`
}

type provisionerLimits struct {
	Resources corev1.ResourceList `json:"resources"`
}

type provisionerConsolidation struct {
	Enabled *bool `json:"enabled"`
}

// provisioner makes a NodePool of a Provisioner, and an EC2NodeClass of its spec.provider.
func (c *conversion) provisioner(o *object) {
	var old provisioner
	if !o.decode(&old) {
		return
	}
	pool := newNodePool(o.metadata(&old.ObjectMeta))
	template := &pool.Spec.Template
	var requirements []betaRequirement
	for _, r := range withDefaults(old.Spec.Requirements) {
		requirements = append(requirements, betaRequirement{NodeSelectorRequirement: r})
	}
	o.template(template, "spec", &old.Spec.nodeMetadata, "spec", old.Spec.nodeTaints, requirements)
	template.Spec.NodeClassRef = c.classOf(o, &old.Spec)
	pool.Spec.Disruption, template.Spec.ExpireAfter = o.ttls(&old.Spec)
	pool.Spec.Weight = old.Spec.Weight
	if old.Spec.Limits != nil {
		pool.Spec.Limits = karpv1.Limits(old.Spec.Limits.Resources)
	}
	if settings := old.Spec.KubeletConfiguration; settings != nil {
		if settings.ContainerRuntime != nil {
			o.lost("spec.kubeletConfiguration.containerRuntime", "every image has containerd only: remove it")
		}
		o.kubelet, o.kubeletField = &settings.kubelet, "spec.kubeletConfiguration"
	}
	o.pool = pool
}

// withDefaults adds the requirements that v1alpha5 implied. A deprecated name of a label counts as the label.
func withDefaults(requirements []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	has := map[string]bool{}
	for _, r := range requirements {
		has[karpv1.NormalizedLabelKey(r.Key)] = true
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	all := append([]corev1.NodeSelectorRequirement{}, requirements...)
	if !has[corev1.LabelOSStable] {
		all = append(all, in(corev1.LabelOSStable, string(corev1.Linux)))
	}
	if !has[corev1.LabelArchStable] {
		all = append(all, in(corev1.LabelArchStable, karpv1.ArchitectureAmd64))
	}
	if !has[karpv1.CapacityTypeLabelKey] {
		all = append(all, in(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand))
	}
	const category, generation = karpv1.AWSLabelDomain + "/instance-category", karpv1.AWSLabelDomain + "/instance-generation"
	if !has[corev1.LabelInstanceTypeStable] && !has[karpv1.AWSLabelDomain+"/instance-family"] && !has[category] && !has[generation] {
		all = append(all, in(category, "c", "m", "r"),
			corev1.NodeSelectorRequirement{Key: generation, Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}})
	}
	return all
}

// ttls turns spec.consolidation and the two TTLs into what v1 has for them.
func (o *object) ttls(spec *provisionerSpec) (karpv1.Disruption, karpv1.NillableDuration) {
	var d karpv1.Disruption
	switch {
	case spec.Consolidation != nil && spec.Consolidation.Enabled != nil && *spec.Consolidation.Enabled:
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, duration("0s")
		if spec.TTLSecondsAfterEmpty != nil {
			o.lost("spec.ttlSecondsAfterEmpty", "spec.consolidation.enabled removes empty nodes as well, and v1alpha5 forbade both together: remove it")
		}
	case spec.TTLSecondsAfterEmpty != nil:
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidationPolicyWhenEmpty, duration(fmt.Sprintf("%ds", *spec.TTLSecondsAfterEmpty))
	default:
		d.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmpty // and never: no node went for being empty
	}
	if spec.TTLSecondsUntilExpired == nil {
		return d, karpv1.NillableDuration{}
	}
	o.expires("spec.ttlSecondsUntilExpired")
	return d, duration(fmt.Sprintf("%ds", *spec.TTLSecondsUntilExpired))
}

// classOf returns the class that a Provisioner's nodes have, and makes it of an inline provider.
func (c *conversion) classOf(o *object, spec *provisionerSpec) *karpv1.NodeClassReference {
	ref := &karpv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass"}
	switch {
	case spec.ProviderRef != nil && len(spec.Provider) > 0:
		o.fail("spec.provider", "spec.providerRef is set as well, and only one can hold: remove one of them")
	case spec.ProviderRef != nil:
		ref.Name = spec.ProviderRef.Name
		if kind := spec.ProviderRef.Kind; kind != "" && kind != nodeTemplateKind.Kind {
			o.fail("spec.providerRef.kind", "%s is not of AWS, which is the only provider that this command knows: write the NodePool's nodeClassRef by hand", kind)
		}
		if ref.Name == "" {
			o.fail("spec.providerRef.name", "is missing: name the AWSNodeTemplate")
		}
	case len(spec.Provider) > 0:
		ref.Name = o.name
		c.inlineProvider(o, spec.Provider)
	default:
		o.fail("spec.providerRef", "is missing, and so is spec.provider: a v1 NodePool has to name the EC2NodeClass of its nodes")
	}
	return ref
}
