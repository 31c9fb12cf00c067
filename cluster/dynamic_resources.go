package cluster

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/equality"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// dynamicResources are the claims to devices, and what drivers have published. It is nil while the feature gate is off.
type dynamicResources struct {
	*shared
	nodes   *feed[*machine]
	pools   *feed[*karpv1.NodePool]
	waiting *waiting

	claims  *feed[*resourcev1.ResourceClaim]
	classes *feed[*resourcev1.DeviceClass]
	slices  *feed[*resourcev1.ResourceSlice]
	// templates are the ResourceClaimTemplates, and rules the DeviceTaintRules, which few clusters serve.
	templates *feed[*resourcev1.ResourceClaimTemplate]
	rules     *feed[*resourcev1beta2.DeviceTaintRule]
	// learnt are the templates of nodes that may be gone, as far as this process has seen them.
	learnt plan.DeviceTemplates
	// kept are those in the annotations of NodePools, by pool.
	kept map[string]keptDevices
}

// keptDevices is what the annotation of a NodePool says.
type keptDevices struct {
	text      string
	templates plan.DeviceTemplates
}

// newDynamicResources prepares the watches of what concerns devices, if follow is set and where the cluster serves it.
func newDynamicResources(w *watches, nodes *feed[*machine], pools *feed[*karpv1.NodePool], waiting *waiting, follow bool,
) *dynamicResources {
	if !follow {
		return nil
	}
	d := &dynamicResources{shared: w.shared, nodes: nodes, pools: pools, waiting: waiting, kept: map[string]keptDevices{}}
	gv := resourcev1.SchemeGroupVersion
	d.claims = open(w, gv, "resourceclaims", &resourcev1.ResourceClaim{}, nil, whole[*resourcev1.ResourceClaim], nameOf[*resourcev1.ResourceClaim], d.claimChanged)
	w.whenServed(gv, d.claims.emptied)
	d.classes = open(w, gv, "deviceclasses", &resourcev1.DeviceClass{}, nil, whole[*resourcev1.DeviceClass], nameOf[*resourcev1.DeviceClass], d.classChanged)
	w.whenServed(gv, d.classes.emptied)
	d.slices = open(w, gv, "resourceslices", &resourcev1.ResourceSlice{}, nil, whole[*resourcev1.ResourceSlice], nameOf[*resourcev1.ResourceSlice], d.sliceChanged)
	w.whenServed(gv, d.slices.emptied)
	d.templates = open(w, gv, "resourceclaimtemplates", &resourcev1.ResourceClaimTemplate{}, nil, whole[*resourcev1.ResourceClaimTemplate], nameOf[*resourcev1.ResourceClaimTemplate], d.templateChanged)
	w.whenServed(gv, d.templates.emptied)
	beta := resourcev1beta2.SchemeGroupVersion
	d.rules = open(w, beta, "devicetaintrules", &resourcev1beta2.DeviceTaintRule{}, nil, whole[*resourcev1beta2.DeviceTaintRule], nameOf[*resourcev1beta2.DeviceTaintRule], d.ruleChanged)
	w.whenServed(beta, d.rules.emptied)
	return d
}

// UnpublishedDriver returns the first of some drivers that has not published a complete pool of devices for a node; empty if
// all have, or if the feature gate is off.
func (d *dynamicResources) UnpublishedDriver(node string, drivers []string) string {
	if d == nil || len(drivers) == 0 {
		return ""
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	var own []*resourcev1.ResourceSlice
	for _, s := range d.slices.items {
		if s.Spec.NodeName != nil && *s.Spec.NodeName == node {
			own = append(own, s)
		}
	}
	published := map[string]bool{}
	for _, s := range plan.CompletePools(own) {
		published[s.Spec.Driver] = true
	}
	for _, driver := range drivers {
		if !published[driver] {
			return driver
		}
	}
	return ""
}

// now is what the next snapshot shows. The lock is held.
func (d *dynamicResources) now() *plan.Devices {
	if d == nil {
		return nil
	}
	shown := &plan.Devices{Claims: make(map[string]*resourcev1.ResourceClaim, len(d.claims.items)),
		Classes: make(map[string]*resourcev1.DeviceClass, len(d.classes.items)), Slices: sorted(d.slices.items),
		Templates: maps.Clone(d.templates.items), TaintRules: sorted(d.rules.items)}
	for key, claim := range d.claims.items {
		shown.Claims[key] = claim
	}
	for key, class := range d.classes.items {
		shown.Classes[key] = class
	}
	d.learnt = d.learnt.With(d.kinds(shown.Slices), shown.Slices)
	shown.Learnt = d.learnt
	d.readPools()
	for _, pool := range slices.Sorted(maps.Keys(d.kept)) {
		shown.Learnt = shown.Learnt.Or(d.kept[pool].templates)
	}
	return shown
}

// kinds returns the kinds of the nodes that have published slices. The lock is held.
func (d *dynamicResources) kinds(published []*resourcev1.ResourceSlice) map[string]plan.NodeKind {
	kinds := map[string]plan.NodeKind{}
	for _, s := range published {
		if name := s.Spec.NodeName; name != nil {
			if node := d.nodes.items[*name]; node != nil {
				kinds[*name] = plan.KindOfNode(node.node.Labels)
			}
		}
	}
	return kinds
}

// readPools reads the annotations of the NodePools that have changed. One that cannot be read counts as absent: it is written
// anew once a node has published devices. The lock is held.
func (d *dynamicResources) readPools() {
	maps.DeleteFunc(d.kept, func(pool string, _ keptDevices) bool { return d.pools.items[pool] == nil })
	for name, pool := range d.pools.items {
		text := pool.Annotations[karpv1.LearntDevicesAnnotationKey]
		if known, read := d.kept[name]; read && known.text == text {
			continue
		}
		learnt, err := plan.ParseLearntDevices(text)
		if err != nil {
			learnt = nil
		}
		d.kept[name] = keptDevices{text: text, templates: learnt.Templates(name)}
	}
}

// PublishedDevices returns what drivers have published for nodes that exist; nil while the feature gate is off.
func (d *dynamicResources) PublishedDevices() plan.DeviceTemplates {
	if d == nil {
		return nil
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	published := sorted(d.slices.items)
	return plan.DeviceTemplates{}.With(d.kinds(published), published)
}

// claimChanged records a change of a ResourceClaim. It is news for the pods that wait if the claim was created or lost its
// allocation. The lock is held.
func (d *dynamicResources) claimChanged(old, now *resourcev1.ResourceClaim, existed, exists bool) {
	d.changed()
	freed := existed && exists && old.Status.Allocation != nil && now.Status.Allocation == nil
	if exists && (!existed || freed) && d.waiting.claims(nameOf(now)) {
		d.publish(Event{Kind: DevicesChanged})
	}
}

// classChanged records a change of a DeviceClass. The lock is held.
func (d *dynamicResources) classChanged(_, _ *resourcev1.DeviceClass, _, _ bool) {
	d.changed()
	d.announce()
}

// templateChanged records a change of a ResourceClaimTemplate: the pods of a CapacityBuffer may name it. The lock is held.
func (d *dynamicResources) templateChanged(_, _ *resourcev1.ResourceClaimTemplate, _, _ bool) {
	d.changed()
	d.publish(Event{Kind: BuffersChanged})
}

// ruleChanged records a change of a DeviceTaintRule. The lock is held.
func (d *dynamicResources) ruleChanged(old, now *resourcev1beta2.DeviceTaintRule, existed, exists bool) {
	if existed && exists && equality.Semantic.DeepEqual(old.Spec, now.Spec) {
		return // only its status has changed
	}
	d.changed()
	d.announce()
}

// sliceChanged records a change of a ResourceSlice, and wakes whoever waits for the devices of its node. The lock is held.
func (d *dynamicResources) sliceChanged(old, now *resourcev1.ResourceSlice, existed, exists bool) {
	if existed && exists && equality.Semantic.DeepEqual(old.Spec, now.Spec) {
		return
	}
	d.changed()
	d.announce()
	d.publish(Event{Kind: DevicesPublished})
	if !exists || now.Spec.NodeName == nil {
		return
	}
	if node := d.nodes.items[*now.Spec.NodeName]; node != nil {
		d.publish(Event{Kind: providerPlace, Name: node.node.Spec.ProviderID})
	}
}

// announce publishes that devices have changed, if a pod that waits claims any.
func (d *dynamicResources) announce() {
	if len(d.waiting.claimed) > 0 {
		d.publish(Event{Kind: DevicesChanged})
	}
}
