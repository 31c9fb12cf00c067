package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// Reasons of the condition Drifted that do not depend on the cloud; they are Karpenter's.
const (
	// DriftNodePool says that the template of the NodePool has changed since the claim was made.
	DriftNodePool = "NodePoolDrifted"
	// DriftRequirements says that the node does not meet the NodePool's requirements.
	DriftRequirements = "RequirementsDrifted"
	// DriftInstanceType says that the node's instance type is no longer sold in its zone and with its capacity type.
	DriftInstanceType = "InstanceTypeNotFound"
)

// typeMissingAfter is the minimum age of a claim for a missing instance type to count: what the cloud sells is fetched
// twice a day, and a type so new that the cloud's own lists disagree about it is not drift.
const typeMissingAfter = time.Hour

// Mold is a NodePool prepared for comparison with many claims.
type Mold struct {
	pool *karpv1.NodePool
	// hash is the pool's, empty where it cannot be computed.
	hash         string
	requirements model.Term
}

// NewMold returns the mold of a pool. It fails if the template cannot be hashed; the mold then finds all other drift.
func NewMold(pool *karpv1.NodePool) (*Mold, error) {
	hash, err := pool.Hash()
	return &Mold{pool: pool, hash: hash, requirements: model.ConditionsOf(pool.Spec.Template.Spec.Requirements)}, err
}

// Drift finds how a launched claim differs from what its NodePool would make now, in Karpenter's order: the static parts of
// the template by their hash, then the requirements by the node's labels, then the instance type among those sold for the
// node class (nil if that is not known). Hashes of different versions are not compared. The provider looks for its own
// reasons after these.
func (m *Mold) Drift(claim *karpv1.NodeClaim, types map[string]*cloud.InstanceType, now time.Time) cloud.Drift {
	made, version := claim.Annotations[karpv1.NodePoolHashAnnotationKey], claim.Annotations[karpv1.NodePoolHashVersionAnnotationKey]
	if made != "" && m.hash != "" && version == karpv1.NodePoolHashVersion && made != m.hash {
		return cloud.Drift{Reason: DriftNodePool, Message: fmt.Sprintf("NodePool %s: %s", m.pool.Name, cmp.Or(
			strings.Join(templateChanges(claim, &m.pool.Spec.Template), "; "),
			fmt.Sprintf("spec.template has changed since the claim was made (hash %s, now %s)", made, m.hash)))}
	}
	if missed := m.missedRequirement(claim); missed != "" {
		return cloud.Drift{Reason: DriftRequirements, Message: fmt.Sprintf("NodePool %s: spec.template.spec.requirements: %s", m.pool.Name, missed)}
	}
	if types != nil && now.Sub(claim.CreationTimestamp.Time) >= typeMissingAfter {
		if why := notSold(claim, types); why != "" {
			return cloud.Drift{Reason: DriftInstanceType, Message: why}
		}
	}
	return cloud.Drift{}
}

// templateChanges names the fields in which a template differs from the one a claim was made from. A label or annotation
// that was removed from the template is recognized by being on the claim, where nothing else may have put it.
func templateChanges(claim *karpv1.NodeClaim, template *karpv1.NodeClaimTemplate) []string {
	var changes []string
	changed := func(field, is, was string) {
		changes = append(changes, fmt.Sprintf("spec.template.%s is %s and was %s", field, is, was))
	}
	provider := ""
	if claim.Spec.NodeClassRef != nil {
		provider = claim.Spec.NodeClassRef.Group
	}
	ours := func(key string) bool {
		return karpv1.RestrictedLabel(key) != nil || karpv1.WellKnownLabel(key) || provider != "" && karpv1.LabelDomain(key) == provider
	}
	mapChanges("metadata.labels", template.Labels, claim.Labels, func(key string) bool {
		return ours(key) || slices.ContainsFunc(claim.Spec.Requirements, func(r karpv1.NodeSelectorRequirementWithMinValues) bool { return r.Key == key })
	}, changed)
	mapChanges("metadata.annotations", template.Annotations, claim.Annotations, func(key string) bool {
		return ours(key) || karpv1.LabelDomain(key) == "tenon.sh"
	}, changed)
	is, was := &template.Spec, &claim.Spec
	life := func(d karpv1.NillableDuration) string { return karpv1.NillableDuration{Duration: d.Duration}.String() } // 1h is 60m
	grace := func(d *metav1.Duration) string { return d.Duration.String() }
	class := func(ref *karpv1.NodeClassReference) string { return ref.Kind + " " + ref.Name }
	for _, field := range []struct{ name, is, was string }{
		{"expireAfter", life(is.ExpireAfter), life(was.ExpireAfter)},
		{"taints", taintText(is.Taints), taintText(was.Taints)},
		{"startupTaints", taintText(is.StartupTaints), taintText(was.StartupTaints)},
		{"terminationGracePeriod", orUnset(is.TerminationGracePeriod, grace), orUnset(was.TerminationGracePeriod, grace)},
		{"nodeClassRef", orUnset(is.NodeClassRef, class), orUnset(was.NodeClassRef, class)},
	} {
		if field.is != field.was {
			changed("spec."+field.name, field.is, field.was)
		}
	}
	return changes
}

// mapChanges reports the keys in which a template's labels or annotations differ from a claim's. It skips a key that only
// the claim has if others says that it does not come from the template.
func mapChanges(field string, template, claim map[string]string, others func(key string) bool, changed func(field, is, was string)) {
	for _, key := range model.SortedKeys(template) {
		if was, there := claim[key]; !there {
			changed(field+"["+key+"]", strconv.Quote(template[key]), "not there")
		} else if was != template[key] {
			changed(field+"["+key+"]", strconv.Quote(template[key]), strconv.Quote(was))
		}
	}
	for _, key := range model.SortedKeys(claim) {
		if _, there := template[key]; !there && !others(key) {
			changed(field+"["+key+"]", "not there", strconv.Quote(claim[key]))
		}
	}
}

// taintText lists taints, each once and in order.
func taintText(taints []corev1.Taint) string {
	texts := make([]string, len(taints))
	for i := range taints {
		texts[i] = taints[i].ToString()
	}
	slices.Sort(texts)
	return fmt.Sprint(slices.Compact(texts))
}

// orUnset is the text of a field, if it is set.
func orUnset[T any](field *T, text func(*T) string) string {
	if field == nil {
		return "not set"
	}
	return text(field)
}

// missedRequirement returns the first requirement of the pool that the claim's labels do not meet; empty if they meet all.
// A label that the claim does not carry is not a miss if the claim was made with that very requirement: its value was left
// open then, and still is.
func (m *Mold) missedRequirement(claim *karpv1.NodeClaim) string {
	for i := range m.requirements {
		c := &m.requirements[i]
		value, present := claim.Labels[c.Key]
		switch {
		case c.Admits(value, present):
		case present:
			return fmt.Sprintf("%s is asked for, and the node has %q", c.String(), value)
		case !slices.ContainsFunc(model.ConditionsOf(claim.Spec.Requirements), func(made model.Condition) bool { return made.ID() == c.ID() }):
			return fmt.Sprintf("%s is asked for, and the node has no such label", c.String())
		}
	}
	return ""
}

// notSold says that a claim's instance type is no longer sold in its zone and with its capacity type; empty if it is. Being
// sold out does not count, nor does a reservation that has run out, whose machines continue as on-demand ones.
func notSold(claim *karpv1.NodeClaim, types map[string]*cloud.InstanceType) string {
	name := claim.Labels[corev1.LabelInstanceTypeStable]
	typ := types[name]
	if typ == nil {
		return fmt.Sprintf("instance type %s is not offered to the node class any more", name)
	}
	zone, capacity := claim.Labels[corev1.LabelTopologyZone], claim.Labels[karpv1.CapacityTypeLabelKey]
	for i := range typ.Offerings {
		o := &typ.Offerings[i]
		same := o.CapacityType == capacity || capacity == karpv1.CapacityTypeReserved && o.CapacityType == karpv1.CapacityTypeOnDemand
		if same && o.Zone == zone {
			return ""
		}
	}
	return fmt.Sprintf("instance type %s is not offered to the node class as %s in zone %s any more", name, capacity, zone)
}
