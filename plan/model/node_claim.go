package model

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// LaunchKey returns a hash of everything that claims must have in common to be launched together.
func (c *Claim) LaunchKey() string {
	key := AppendString(nil, c.NodePool, c.NodeClass, c.CapacityType, c.Reservation, strings.Join(c.InstanceTypes, ","), strings.Join(c.Zones, ","))
	if c.MaxPricePerHour > 0 {
		key = AppendString(key, formatPrice(c.MaxPricePerHour))
	}
	sum := sha256.Sum256(AppendMap(key, c.Labels))
	return hex.EncodeToString(sum[:8])
}

// formatPrice formats a price so that MaxPrice reads the same number.
func formatPrice(dollars float64) string { return strconv.FormatFloat(dollars, 'f', -1, 64) }

// MaxPrice returns what an offering of a claim may cost at most, in US dollars per hour; infinite if the claim sets no
// valid price.
func MaxPrice(claim *karpv1.NodeClaim) float64 {
	price, err := strconv.ParseFloat(claim.Annotations[karpv1.MaxPriceAnnotationKey], 64)
	if err != nil || price <= 0 {
		return math.Inf(1)
	}
	return price
}

// Narrowed returns the pool's requirements, with the claim's instance types, capacity type, zones and reservation and the
// settled values of custom labels. These come first, and settled is their number.
func Narrowed(keys cloud.LabelKeys, pool *karpv1.NodePool, c *Claim) (result []karpv1.NodeSelectorRequirementWithMinValues, settled int) {
	in := func(key string, values []string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: slices.Sorted(slices.Values(values))}
	}
	result = []karpv1.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelInstanceTypeStable, c.InstanceTypes),
		in(karpv1.CapacityTypeLabelKey, []string{c.CapacityType}),
		in(corev1.LabelTopologyZone, c.Zones),
	}
	if c.Reservation != "" {
		result = append(result, in(keys.ReservationID, []string{c.Reservation}))
	}
	for _, key := range SortedKeys(c.Labels) {
		result = append(result, in(key, []string{c.Labels[key]}))
	}
	settled = len(result)
	for _, r := range pool.Spec.Template.Spec.Requirements {
		i := slices.IndexFunc(result[:settled], func(s karpv1.NodeSelectorRequirementWithMinValues) bool { return s.Key == NormalizedKey(r.Key) })
		switch {
		case i < 0:
			result = append(result, *r.DeepCopy())
		case i < settled-len(c.Labels) && r.MinValues != nil && *r.MinValues <= len(result[i].Values):
			result[i].MinValues = r.MinValues
		}
	}
	return result, settled
}

// NodeClaim returns the NodeClaim to create. It already has its labels, annotations, owner and finalizer, so that no second
// write is needed. It fails if the pool's template cannot be hashed.
func (c *Claim) NodeClaim(pool *karpv1.NodePool, name string) (*karpv1.NodeClaim, error) {
	hash, err := pool.Hash()
	if err != nil {
		return nil, err
	}
	template := pool.Spec.Template.DeepCopy()
	labels := map[string]string{}
	maps.Copy(labels, template.Labels)
	for key, value := range c.Labels {
		// Well-known labels are written once the machine is known; until then the requirement says the value.
		if !karpv1.WellKnownLabel(key) {
			labels[key] = value
		}
	}
	labels[karpv1.NodePoolLabelKey] = pool.Name
	if ref := template.Spec.NodeClassRef; ref != nil {
		labels[karpv1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
	}
	annotations := map[string]string{}
	maps.Copy(annotations, template.Annotations)
	annotations[karpv1.NodePoolHashAnnotationKey] = hash
	annotations[karpv1.NodePoolHashVersionAnnotationKey] = karpv1.NodePoolHashVersion
	if c.MinValuesRelaxed {
		annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] = "true"
	}
	if len(c.Drivers) > 0 {
		annotations[karpv1.DRADriversAnnotationKey] = strings.Join(c.Drivers, ",")
	}
	if c.MaxPricePerHour > 0 {
		annotations[karpv1.MaxPriceAnnotationKey] = formatPrice(c.MaxPricePerHour)
	}
	yes := true
	return &karpv1.NodeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: karpv1.Group + "/v1", Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      labels,
			Annotations: annotations,
			Finalizers:  []string{karpv1.TerminationFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpv1.Group + "/v1", Kind: "NodePool", Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: karpv1.NodeClaimSpec{
			Taints:                 template.Spec.Taints,
			StartupTaints:          template.Spec.StartupTaints,
			Requirements:           c.Requirements,
			Resources:              karpv1.ResourceRequirements{Requests: c.Requests},
			NodeClassRef:           template.Spec.NodeClassRef,
			TerminationGracePeriod: template.Spec.TerminationGracePeriod,
			ExpireAfter:            template.Spec.ExpireAfter,
		},
	}, nil
}
