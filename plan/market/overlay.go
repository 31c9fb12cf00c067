package market

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// leastPrice is what an overlay lowers a price to at least, in US dollars per hour: a price of 0 says that nobody knows it.
const leastPrice = 1e-9

// Overlays are the NodeOverlays that apply. They change what planning takes instance types for, and nothing else: a node
// that was launched without them has not drifted. The zero value changes nothing.
type Overlays struct {
	// list has the overlay of the highest weight first, and of equal weights that whose name comes last.
	list []overlay
}

// overlay is a NodeOverlay with its requirements sorted by what has to be known to judge them.
type overlay struct {
	object *v1alpha1.NodeOverlay
	// ofType are about the labels of instance type and NodePool, ofOffering about those of an offering.
	ofType, ofOffering model.Term
}

// OverlayProblem says why a NodeOverlay does not apply.
type OverlayProblem struct {
	// Reason is one of the reasons of the condition ValidationSucceeded.
	Reason string
	// Message is for people, and says what to change.
	Message string
}

// NewOverlays finds the NodeOverlays that apply to pools, and what is wrong with the others, by name. An overlay that sets
// what another one of its weight has set, in any pool, applies nowhere; of two such overlays the one whose name comes last
// applies, as with Karpenter. Types of the pools are as the cloud has them.
func NewOverlays(all []*v1alpha1.NodeOverlay, pools []model.Pool) (*Overlays, map[string]OverlayProblem) {
	problems := map[string]OverlayProblem{}
	o := &Overlays{}
	peers := map[int32]int{}
	for _, object := range all {
		peers[weightOf(object)]++
	}
	taken := map[int32]fieldOwners{}
	for _, object := range slices.SortedFunc(slices.Values(all), winsFirst) {
		if errs := object.Validate(); len(errs) > 0 {
			problems[object.Name] = OverlayProblem{v1alpha1.ReasonRuntimeValidation, errs.ToAggregate().Error()}
			continue
		}
		one := newOverlay(object)
		if weight := weightOf(object); peers[weight] > 1 {
			if taken[weight] == nil {
				taken[weight] = fieldOwners{}
			}
			if conflict := taken[weight].add(object, one.wants(pools)); conflict != "" {
				problems[object.Name] = OverlayProblem{v1alpha1.ReasonConflict, conflict}
				continue
			}
		}
		o.list = append(o.list, one)
	}
	return o, problems
}

// winsFirst orders overlays: those that win come first.
func winsFirst(a, b *v1alpha1.NodeOverlay) int {
	return cmp.Or(-cmp.Compare(weightOf(a), weightOf(b)), -cmp.Compare(a.Name, b.Name))
}

func weightOf(o *v1alpha1.NodeOverlay) int32 {
	if o.Spec.Weight == nil {
		return 0
	}
	return *o.Spec.Weight
}

func newOverlay(object *v1alpha1.NodeOverlay) overlay {
	var conditions model.Term
	for _, r := range object.Spec.Requirements {
		conditions = append(conditions, model.NewCondition(karpv1.NormalizedLabelKey(r.Key), r.Operator, r.Values))
	}
	o := overlay{object: object}
	o.ofOffering, o.ofType = byOffering(conditions)
	return o
}

// overlaidField is something that an overlay sets: the price of an offering, or an extended resource of an instance type.
type overlaidField struct {
	pool, instanceType string
	offering           cloud.OfferingKey
	resource           corev1.ResourceName
}

// String is for people.
func (f overlaidField) String() string {
	if f.resource != "" {
		return fmt.Sprintf("%s of %s in NodePool %s", f.resource, f.instanceType, f.pool)
	}
	return fmt.Sprintf("the price of %s %s in %s in NodePool %s", f.offering.CapacityType, f.instanceType, f.offering.Zone, f.pool)
}

// fieldOwners say which of the overlays of one weight sets a field.
type fieldOwners map[overlaidField]*v1alpha1.NodeOverlay

// add adds what an overlay sets, unless another one sets some of it; then it says so.
func (c fieldOwners) add(object *v1alpha1.NodeOverlay, fields []overlaidField) (conflict string) {
	for _, f := range fields {
		if other := c[f]; other != nil {
			return fmt.Sprintf("NodeOverlay %s has the same weight and sets %s, too: give them different weights, or narrow spec.requirements", other.Name, f)
		}
	}
	for _, f := range fields {
		c[f] = object
	}
	return ""
}

// wants are the fields that an overlay sets.
func (o *overlay) wants(pools []model.Pool) []overlaidField {
	var wants []overlaidField
	for _, pool := range pools {
		labels := templateLabels(pool.NodePool)
		for _, typ := range pool.Types {
			offered := o.offerings(typ, labels)
			if len(offered) == 0 {
				continue
			}
			if o.object.ChangesPrice() {
				for _, i := range offered {
					wants = append(wants, overlaidField{pool: pool.NodePool.Name, instanceType: typ.Name, offering: typ.Offerings[i].Key(typ)})
				}
			}
			for _, name := range slices.Sorted(maps.Keys(o.object.Spec.Capacity)) {
				wants = append(wants, overlaidField{pool: pool.NodePool.Name, instanceType: typ.Name, resource: name})
			}
		}
	}
	return wants
}

// offerings are the offerings of a type that the overlay is about, for nodes with the labels of their NodePool.
func (o *overlay) offerings(typ *cloud.InstanceType, labels map[string]string) []int {
	if !admitsType(o.ofType, typ, labels) {
		return nil
	}
	var found []int
	for i := range typ.Offerings {
		if len(o.ofOffering) == 0 || o.ofOffering.Admits(offeringLabels(typ, &typ.Offerings[i])) {
			found = append(found, i)
		}
	}
	return found
}

// Apply returns what is sold for the nodes of a pool. What no overlay is about is shared with the argument, which is not
// changed.
func (o *Overlays) Apply(pool *karpv1.NodePool, types []*cloud.InstanceType) []*cloud.InstanceType {
	if o == nil || len(o.list) == 0 {
		return types
	}
	labels := templateLabels(pool)
	made := make([]*cloud.InstanceType, len(types))
	for i, typ := range types {
		made[i] = o.typ(typ, labels)
	}
	return made
}

// typ is what the overlays make of an instance type. Each field is set by the first overlay that does.
func (o *Overlays) typ(typ *cloud.InstanceType, labels map[string]string) *cloud.InstanceType {
	made := *typ
	for i := range o.list {
		one := &o.list[i]
		offered := one.offerings(typ, labels)
		if len(offered) == 0 {
			continue
		}
		if one.object.ChangesPrice() {
			made.Offerings = one.priced(made.Offerings, typ.Offerings, offered)
		}
		for name, quantity := range one.object.Spec.Capacity {
			if made.Overlaid[name] {
				continue
			}
			made.Overlaid = with(made.Overlaid, name, true)
			made.Capacity, made.Allocatable = with(made.Capacity, name, quantity), with(made.Allocatable, name, quantity)
		}
	}
	if made.Overlaid == nil && !slices.ContainsFunc(made.Offerings, func(o cloud.Offering) bool { return o.Overlaid }) {
		return typ
	}
	return &made
}

// priced are offerings with the overlay's price where no other has set one.
func (o *overlay) priced(offerings, original []cloud.Offering, which []int) []cloud.Offering {
	if len(offerings) > 0 && &offerings[0] == &original[0] {
		offerings = slices.Clone(offerings)
	}
	for _, i := range which {
		if offering := &offerings[i]; !offering.Overlaid {
			offering.Price, offering.Overlaid = max(leastPrice, o.object.AdjustedPrice(offering.Price)), true
		}
	}
	return offerings
}

// with is a map with one more entry. The argument is not changed.
func with[M ~map[K]V, K comparable, V any](m M, key K, value V) M {
	clone := make(M, len(m)+1)
	maps.Copy(clone, m)
	clone[key] = value
	return clone
}
