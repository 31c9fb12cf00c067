package market

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// minPrice is the lowest price that an overlay can set, in US dollars per hour: a price of 0 means that the price is not
// known.
const minPrice = 1e-9

// Overlays are the NodeOverlays that apply. They change how planning sees instance types, and nothing else: a node that was
// launched without them has not drifted. The zero value changes nothing.
type Overlays struct {
	// list is ordered by descending weight, and within a weight by descending name.
	list []overlay
}

// overlay is a NodeOverlay with its requirements split by what has to be known to evaluate them.
type overlay struct {
	keys   cloud.LabelKeys
	object *v1alpha1.NodeOverlay
	// ofType are about the labels of instance type and NodePool, ofOffering about those of an offering.
	ofType, ofOffering model.Term
	// devices are its templates of what drivers publish.
	devices []*resourcev1.ResourceSlice
}

// OverlayProblem says why a NodeOverlay does not apply.
type OverlayProblem struct {
	// Reason is one of the reasons of the condition ValidationSucceeded.
	Reason string
	// Message is for people, and says what to change.
	Message string
}

// NewOverlays finds the NodeOverlays that apply to pools, and what is wrong with the others, by name. An overlay that sets
// what another one of the same weight has set, in any pool, applies nowhere; of two such overlays the one whose name sorts
// last applies, as with Karpenter. The types of the pools have to be as the cloud reports them.
func NewOverlays(keys cloud.LabelKeys, all []*v1alpha1.NodeOverlay, pools []model.Pool) (*Overlays, map[string]OverlayProblem) {
	problems := map[string]OverlayProblem{}
	o := &Overlays{}
	setBy, weight := map[string]string{}, int32(0) // what those of one weight set
	winsFirst := func(a, b *v1alpha1.NodeOverlay) int {
		return cmp.Or(-cmp.Compare(weightOf(a), weightOf(b)), -cmp.Compare(a.Name, b.Name))
	}
	for _, object := range slices.SortedFunc(slices.Values(all), winsFirst) {
		if errs := object.Validate(); len(errs) > 0 {
			problems[object.Name] = OverlayProblem{v1alpha1.ReasonRuntimeValidation, errs.ToAggregate().Error()}
			continue
		}
		if weightOf(object) != weight {
			weight = weightOf(object)
			clear(setBy)
		}
		one := newOverlay(keys, object)
		fields := one.fields(pools)
		if i := slices.IndexFunc(fields, func(f string) bool { return setBy[f] != "" }); i >= 0 {
			problems[object.Name] = OverlayProblem{v1alpha1.ReasonConflict, fmt.Sprintf(
				"NodeOverlay %s has the same weight and sets %s, too: give them different weights, or narrow spec.requirements", setBy[fields[i]], fields[i])}
			continue
		}
		for _, f := range fields {
			setBy[f] = object.Name
		}
		o.list = append(o.list, one)
	}
	return o, problems
}

func weightOf(o *v1alpha1.NodeOverlay) int32 { return ptr.Deref(o.Spec.Weight, 0) }

func newOverlay(keys cloud.LabelKeys, object *v1alpha1.NodeOverlay) overlay {
	var conditions model.Term
	for _, r := range object.Spec.Requirements {
		conditions = append(conditions, model.NewCondition(karpv1.NormalizedLabelKey(r.Key), r.Operator, r.Values))
	}
	o := overlay{keys: keys, object: object}
	o.devices, _ = object.DeviceTemplates() // Validate has reported the error
	o.ofOffering, o.ofType = byOffering(keys, conditions)
	return o
}

// driversOf returns the drivers of some slices, ordered by name.
func driversOf(published []*resourcev1.ResourceSlice) []string {
	var drivers []string
	for _, s := range published {
		drivers = append(drivers, s.Spec.Driver)
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

// fields are what an overlay sets, in words: prices of offerings, and extended resources and devices of instance types.
func (o *overlay) fields(pools []model.Pool) []string {
	var fields []string
	for _, pool := range pools {
		labels, in := templateLabels(pool.NodePool), " in NodePool "+pool.NodePool.Name
		for _, typ := range pool.Types {
			offered := o.offerings(typ, labels)
			if len(offered) == 0 {
				continue
			}
			for _, i := range offered {
				if sold := typ.Offerings[i].Key(typ); o.object.ChangesPrice() {
					what := strings.TrimSpace(sold.CapacityType + " " + sold.ReservationID)
					fields = append(fields, "the price of "+what+" "+typ.Name+" in "+sold.Zone+in)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(o.object.Spec.Capacity)) {
				fields = append(fields, string(name)+" of "+typ.Name+in)
			}
			for _, driver := range driversOf(o.devices) {
				fields = append(fields, "the devices of "+driver+" of "+typ.Name+in)
			}
		}
	}
	return fields
}

// offerings returns the offerings of a type that the overlay covers, by index, for nodes with the labels of their NodePool.
func (o *overlay) offerings(typ *cloud.InstanceType, labels map[string]string) []int {
	if !admitsType(o.keys, o.ofType, typ, labels) {
		return nil
	}
	var found []int
	for i := range typ.Offerings {
		if len(o.ofOffering) == 0 || o.ofOffering.Admits(offeringLabels(o.keys, typ, &typ.Offerings[i])) {
			found = append(found, i)
		}
	}
	return found
}

// Apply returns the instance types for the nodes of a pool, as the overlays change them. Types that no overlay covers are
// shared with the argument, which is not changed.
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

// typ returns an instance type as the overlays change it. The first overlay that sets a field decides it.
func (o *Overlays) typ(typ *cloud.InstanceType, labels map[string]string) *cloud.InstanceType {
	made, priced := *typ, false
	described := map[string]bool{} // the drivers whose devices an overlay has set
	for _, one := range o.list {
		offered := one.offerings(typ, labels)
		if len(offered) == 0 {
			continue
		}
		if one.object.ChangesPrice() {
			if !priced {
				made.Offerings, priced = slices.Clone(typ.Offerings), true
			}
			for _, i := range offered {
				if offering := &made.Offerings[i]; !offering.Overlaid {
					offering.Price, offering.Overlaid = max(minPrice, one.object.AdjustedPrice(offering.Price)), true
				}
			}
		}
		if len(one.object.Spec.Capacity) > 0 && made.Overlaid == nil {
			made.Overlaid, made.Capacity, made.Allocatable = map[corev1.ResourceName]bool{}, corev1.ResourceList{}, corev1.ResourceList{}
			maps.Copy(made.Capacity, typ.Capacity)
			maps.Copy(made.Allocatable, typ.Allocatable)
		}
		for name, quantity := range one.object.Spec.Capacity {
			if !made.Overlaid[name] {
				made.Overlaid[name], made.Capacity[name], made.Allocatable[name] = true, quantity, quantity
			}
		}
		for _, s := range one.devices {
			if !described[s.Spec.Driver] {
				made.Devices = append(slices.Clip(made.Devices), s)
			}
		}
		for _, driver := range driversOf(one.devices) {
			described[driver] = true
		}
	}
	if !priced && made.Overlaid == nil && len(described) == 0 {
		return typ
	}
	return &made
}
