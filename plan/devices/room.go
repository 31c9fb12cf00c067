package devices

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// Room is the free devices of one node: one that exists, one on its way, or one that might be bought. It is immutable. A nil
// room has no devices.
type Room struct {
	index *Index
	// id identifies the node. Rooms of other machines that the node might become have the same.
	id int
	// kinds are what the node may be, as far as its devices are concerned: what is taken of it has to be there in every case.
	kinds []view
	// claims are the claims of several pods that were allocated here; true if only this node reaches their devices.
	claims map[string]bool
	// users is how many pods use each claim of several, as far as that is not committed.
	users map[string]int
}

// key is equal for rooms in the same state.
func (r *Room) key() string {
	var key strings.Builder
	for i := range r.kinds {
		key.WriteString(r.kinds[i].key + "\x00")
	}
	return key.String()
}

// with returns the room with one more pod, or nil if it does not hold it.
func (r *Room) with(n *Needs) *Room {
	var claims []asked
	for _, one := range n.shared {
		elsewhere, allocated := r.index.plan.claims[one.key]
		if _, here := r.claims[one.key]; here {
			continue
		}
		switch {
		case allocated && elsewhere.local && elsewhere.node != r.id:
			return nil
		case !allocated || elsewhere.node == r.id:
			claims = append(claims, one)
		}
	}
	shared := len(claims)
	if claims = append(claims, n.own...); len(claims) == 0 {
		return r
	}
	next := *r
	next.kinds, next.claims = make([]view, len(r.kinds)), maps.Clone(r.claims)
	for i := range r.kinds {
		results := r.index.allocate(r.id, &r.kinds[i], claims)
		if len(results) != len(claims) {
			return nil
		}
		next.kinds[i] = r.kinds[i].take(results)
		for c, one := range claims[:shared] {
			if next.claims == nil {
				next.claims = map[string]bool{}
			}
			next.claims[one.key] = next.claims[one.key] || results[c].NodeSelector != nil
		}
	}
	return &next
}

// Place returns the number of pods with these needs that have room, up to most, and the room that they leave.
func (r *Room) Place(n *Needs, most int) (int, *Room) {
	if n.None() || most <= 0 {
		return max(0, most), r
	}
	if r == nil {
		if n.Allocates() {
			return 0, nil
		}
		return most, nil
	}
	for _, key := range n.used {
		most = min(most, r.index.left(key)-r.users[key])
	}
	placed, room := 0, r
	for placed < most {
		next := room.with(n)
		if next == nil {
			break
		}
		placed++
		if next.key() == room.key() {
			placed = most // nothing was used up
		}
		room = next
	}
	if placed == 0 {
		return 0, r
	}
	counted := *room
	counted.users = maps.Clone(r.users)
	for _, key := range n.used {
		if counted.users == nil {
			counted.users = map[string]int{}
		}
		counted.users[key] += placed
	}
	return placed, &counted
}

// Holds returns the number of pods with these needs that have room, up to most.
func (r *Room) Holds(n *Needs, most int) int {
	placed, _ := r.Place(n, most)
	return placed
}

// Commit makes what was taken of a room known to the other rooms, and returns the room to continue with.
func (r *Room) Commit() *Room {
	if r == nil {
		return nil
	}
	x := r.index
	for i := range r.kinds {
		if remote := r.kinds[i].remote; len(remote) > 0 {
			x.plan.remote[r.id] = remote
		}
	}
	for key, local := range r.claims {
		x.plan.claims[key] = place{node: r.id, local: local}
	}
	for key, n := range r.users {
		x.plan.users[key] += n
	}
	committed := *r
	committed.users = nil
	return &committed
}

// Drivers returns the drivers of the node's own devices that were taken, whichever kind it becomes, ordered by name.
func (r *Room) Drivers() []string {
	if r == nil {
		return nil
	}
	var drivers []string
	for i := range r.kinds {
		drivers = append(drivers, r.kinds[i].drivers...)
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

// template returns the slices that drivers will publish for a kind of node. What NodeOverlays describe comes before what was
// learnt from the same drivers.
func (x *Index) template(kind model.NodeKind) []*resourcev1.ResourceSlice {
	described := x.described[kind]
	learnt := slices.DeleteFunc(slices.Clone(x.templates[kind]), func(s *resourcev1.ResourceSlice) bool {
		return slices.ContainsFunc(described, func(d *resourcev1.ResourceSlice) bool { return d.Spec.Driver == s.Spec.Driver })
	})
	return slices.Concat(described, learnt)
}

// viewOf returns what a new node reaches.
func (x *Index) viewOf(pool string, typ *cloud.InstanceType, labels map[string]string) view {
	kind := model.NodeKind{Pool: pool, InstanceType: typ.Name}
	own, known := x.fresh[kind]
	if !known {
		for _, s := range x.template(kind) {
			own = append(own, x.tainted(renamed(s, newNode)))
		}
		x.fresh[kind] = own
	}
	return view{node: nodeNamed(newNode, labels), slices: slices.Concat(own, x.remote), key: "new " + pool + "\x00" + typ.Name}
}

// room numbers a new room.
func (x *Index) room(v view) *Room {
	x.rooms++
	v.used = x.used
	return &Room{index: x, id: x.rooms, kinds: []view{v}}
}

// Room returns the free devices of a node that exists or is on its way; nil if its machine is not known.
func (x *Index) Room(n *model.Node) *Room {
	if x == nil || n.InstanceType == "" && n.Name == "" {
		return nil
	}
	name := cmp.Or(n.Name, n.Claim)
	own := x.local[n.Name]
	for _, s := range own {
		// The allocator has to see all slices of a pool, even those of other nodes.
		for _, other := range x.pools[poolOf(s)] {
			if other.Spec.NodeName != nil && !slices.Contains(own, other) {
				own = append(slices.Clip(own), other)
			}
		}
	}
	if !n.Initialized && n.InstanceType != "" {
		complete := model.CompletePools(own)
		for _, s := range x.template(model.NodeKind{Pool: n.Pool, InstanceType: n.InstanceType}) {
			published := func(p *resourcev1.ResourceSlice) bool { return p.Spec.Driver == s.Spec.Driver }
			if !slices.ContainsFunc(complete, published) {
				own = append(slices.Clip(own), x.tainted(renamed(s, name)))
			}
		}
	}
	return x.room(view{node: nodeNamed(name, n.Labels), slices: slices.Concat(own, x.remote), key: "node " + name})
}

// Reaches reports whether a new node of a NodePool would reach any devices. It costs much less than to make its room.
func (x *Index) Reaches(pool string, typ *cloud.InstanceType) bool {
	kind := model.NodeKind{Pool: pool, InstanceType: typ.Name}
	return len(x.remote) > 0 || len(x.described[kind]) > 0 || len(x.templates[kind]) > 0
}

// NewRoom returns the devices of a new node of a NodePool. labels are those that it will have whatever its zone.
func (x *Index) NewRoom(pool string, typ *cloud.InstanceType, labels map[string]string) *Room {
	if x == nil {
		return nil
	}
	return x.room(x.viewOf(pool, typ, labels))
}

// Instead returns the devices of another machine that the node of a room might become, with nothing taken.
func (r *Room) Instead(pool string, typ *cloud.InstanceType, labels map[string]string) *Room {
	if r == nil {
		return nil
	}
	other := r.index.room(r.index.viewOf(pool, typ, labels))
	other.id = r.id
	return other
}

// Either returns the room of a node that becomes one of several machines; nil if there are none.
func Either(rooms []*Room) *Room {
	var either *Room
	for _, r := range rooms {
		switch {
		case r == nil:
			return nil
		case either == nil:
			first := *r
			either = &first
		case !slices.ContainsFunc(either.kinds, func(v view) bool { return v.key == r.kinds[0].key }):
			either.kinds = append(slices.Clip(either.kinds), r.kinds...)
		}
	}
	return either
}
