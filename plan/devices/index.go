package devices

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Index knows the claims, classes and devices of one snapshot, and what a plan has taken of them. A nil Index knows no
// devices: no pod claims any, or the feature gate is off.
type Index struct {
	known     *model.Devices
	allocator allocator
	compiled  *upstream
	// users are the pods that use a claim, by its key. Pods that have ended are not among them.
	users map[string][]*model.Pod
	// hosts are the hostname labels of the nodes, by name.
	hosts map[string]string
	// local are the published slices of each node's own devices, remote those of devices that several nodes reach, and pools
	// all slices of a pool.
	local  map[string][]*resourcev1.ResourceSlice
	remote []*resourcev1.ResourceSlice
	pools  map[poolID][]*resourcev1.ResourceSlice
	// templates are what drivers published for nodes of a kind, and described what NodeOverlays say they will.
	templates model.DeviceTemplates
	described model.DeviceTemplates
	// used are the devices of the claims that are allocated.
	used usage
	// rooms counts the rooms, to number them.
	rooms int
	// plan is what the plan has done so far.
	plan planned

	needs map[*model.Pod]Needs
	// fresh are the slices of new nodes by kind. answers are allocations by view and claims; nil where there is none.
	fresh   map[model.NodeKind][]*resourcev1.ResourceSlice
	answers map[string][]resourcev1.AllocationResult
	// problems are errors of the allocator, by claims.
	problems map[string]error
}

// poolID identifies a pool of devices.
type poolID struct{ driver, pool string }

func poolOf(s *resourcev1.ResourceSlice) poolID { return poolID{s.Spec.Driver, s.Spec.Pool.Name} }

// planned is what a plan has done with claims that concern more than one node.
type planned struct {
	// claims are the claims of several pods that it allocates.
	claims map[string]place
	// users is how many pods it gives each claim of several.
	users map[string]int
	// remote are the devices it takes that are not local to a node, with the node's room.
	remote map[int][]resourcev1.DeviceRequestAllocationResult
}

// place is where a claim is allocated: on a node, and whether others can use it.
type place struct {
	node  int
	local bool
}

// NewIndex indexes the devices of an input's snapshot for some pods. It returns nil if the feature gate is off or none of them
// has claims.
func NewIndex(in *model.Input, pods []*model.Pod) *Index {
	known := in.Snapshot.Devices
	if known == nil || !slices.ContainsFunc(pods, func(pod *model.Pod) bool { return pod.Class.ResourceClaims }) {
		return nil
	}
	up := newUpstream(known.Classes)
	x := &Index{known: known, allocator: up, compiled: up, users: map[string][]*model.Pod{}, hosts: map[string]string{},
		pools: map[poolID][]*resourcev1.ResourceSlice{}, described: describedBy(in.Pools), needs: map[*model.Pod]Needs{},
		fresh: map[model.NodeKind][]*resourcev1.ResourceSlice{}, answers: map[string][]resourcev1.AllocationResult{}, problems: map[string]error{},
		plan: planned{claims: map[string]place{}, users: map[string]int{}, remote: map[int][]resourcev1.DeviceRequestAllocationResult{}}}
	x.use(in.Snapshot.Pending)
	kinds := map[string]model.NodeKind{}
	for _, n := range in.Snapshot.Nodes {
		x.use(n.Pods)
		if n.Name != "" {
			x.hosts[n.Name] = cmp.Or(n.Labels[corev1.LabelHostname], n.Name)
			kinds[n.Name] = model.KindOfNode(n.Labels)
		}
	}
	x.templates = known.Learnt.With(kinds, known.Slices)
	published := make([]*resourcev1.ResourceSlice, len(known.Slices))
	for i, s := range known.Slices {
		published[i] = x.tainted(s)
	}
	x.local = model.LocalSlices(published)
	for _, s := range published {
		x.pools[poolOf(s)] = append(x.pools[poolOf(s)], s)
		if s.Spec.NodeName == nil {
			x.remote = append(x.remote, s)
		}
	}
	var allocated []*resourcev1.AllocationResult
	for _, key := range model.SortedKeys(known.Claims) {
		if allocation := known.Claims[key].Status.Allocation; allocation != nil {
			allocated = append(allocated, allocation)
		}
	}
	x.used = usage{}.with(allocated...)
	return x
}

// describedBy returns the templates that NodeOverlays give the instance types of pools.
func describedBy(pools []model.Pool) model.DeviceTemplates {
	described := model.DeviceTemplates{}
	for i := range pools {
		for _, typ := range pools[i].Types {
			if len(typ.Devices) > 0 {
				described[model.NodeKind{Pool: pools[i].NodePool.Name, InstanceType: typ.Name}] = typ.Devices
			}
		}
	}
	return described
}

// use records which claims pods use.
func (x *Index) use(pods []*model.Pod) {
	for _, pod := range pods {
		for _, entry := range pod.Claims.All() {
			if key := pod.Namespace + "/" + entry.Claim; entry.Claim != "" && !pod.Terminal {
				x.users[key] = append(x.users[key], pod)
			}
		}
	}
}

// allocate allocates claims from a view of a node with a room of that number. It returns one result for each claim, or none
// if that is not possible.
func (x *Index) allocate(room int, v *view, claims []asked) []resourcev1.AllocationResult {
	var key strings.Builder
	key.WriteString(v.key)
	objects := make([]*resourcev1.ResourceClaim, len(claims))
	for i := range claims {
		objects[i] = claims[i].claim
	}
	key.WriteString("\x06" + keyOf(claims))
	used := v.used
	for _, other := range slices.Sorted(maps.Keys(x.plan.remote)) {
		if other == room || len(x.plan.remote[other]) == 0 {
			continue
		}
		used = used.with(&resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: x.plan.remote[other]}})
		for _, device := range x.plan.remote[other] {
			key.WriteString("\x07" + device.Driver + "\x00" + device.Pool + "\x00" + device.Device)
		}
	}
	results, known := x.answers[key.String()]
	if !known {
		var err error
		if results, err = x.allocator.allocate(v.node, v.slices, used, objects); err != nil {
			x.problems[keyOf(claims)] = err
		}
		x.answers[key.String()] = results
	}
	return results
}

// Keep returns a function that restores what is known now about the plan.
func (x *Index) Keep() (restore func()) {
	if x == nil {
		return func() {}
	}
	kept := planned{claims: maps.Clone(x.plan.claims), users: maps.Clone(x.plan.users), remote: maps.Clone(x.plan.remote)}
	return func() { x.plan = kept }
}
