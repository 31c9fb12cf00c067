package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attachments are the volumes that a pod's node has to attach, of drivers that limit how many a node can.
type attachments struct {
	// own counts, by driver, the volumes that no other pod mounts. They are ordered by driver.
	own []driverCount
	// shared are the volumes that others mount as well, ordered: they count once for all pods on a node.
	shared []AttachableVolume
}

type driverCount struct {
	driver string
	count  int
}

func (a *attachments) none() bool { return len(a.own) == 0 && len(a.shared) == 0 }

// id tells settled attachments apart.
func (a *attachments) id() string {
	if a.none() {
		return ""
	}
	var id strings.Builder
	for _, own := range a.own {
		fmt.Fprintf(&id, "\x03%s\x00%d", own.driver, own.count)
	}
	for _, volume := range a.shared {
		fmt.Fprintf(&id, "\x04%s\x00%s", volume.Driver, volume.Handle)
	}
	return id.String()
}

// settle writes the attachments in one way.
func (a *attachments) settle() {
	slices.SortFunc(a.own, func(x, y driverCount) int { return cmp.Compare(x.driver, y.driver) })
	slices.SortFunc(a.shared, func(x, y AttachableVolume) int {
		return cmp.Or(cmp.Compare(x.Driver, y.Driver), cmp.Compare(x.Handle, y.Handle))
	})
	a.shared = slices.Compact(a.shared)
}

// attach adds a volume. Volumes of drivers without limits are left out, so that they keep no pods apart.
func (b *volumeBook) attach(to *attachments, volume AttachableVolume, shared bool) {
	switch {
	case !b.limited[volume.Driver]:
	case shared:
		to.shared = append(to.shared, volume)
	default:
		at := slices.IndexFunc(to.own, func(c driverCount) bool { return c.driver == volume.Driver })
		if at < 0 {
			to.own = append(to.own, driverCount{driver: volume.Driver, count: 1})
			return
		}
		to.own[at].count++
	}
}

// learn takes up the limits of a node. Nodes of one type may differ by what else is attached to them; the least counts.
func (b *volumeBook) learn(n *Node) {
	for driver, limit := range n.AttachLimits {
		b.limited[driver] = true
		if n.InstanceType == "" {
			continue
		}
		typical := b.typical[n.InstanceType]
		if typical == nil {
			typical = map[string]int{}
			b.typical[n.InstanceType] = typical
		}
		if least, ok := typical[driver]; !ok || limit < least {
			typical[driver] = limit
		}
	}
}

// attachRoom is how many volumes a node can still attach. A nil room is one without limits.
type attachRoom struct {
	// left is how many more volumes each driver attaches; a driver without limit is not there.
	left map[string]int
	// mounted are the volumes of the node's pods.
	mounted map[AttachableVolume]bool
}

// newRoom is the room on a node of an instance type that does not exist yet, as far as nodes of the same type tell.
func (b *volumeBook) newRoom(instanceType string) *attachRoom {
	if len(b.typical[instanceType]) == 0 {
		return nil
	}
	return &attachRoom{left: maps.Clone(b.typical[instanceType]), mounted: map[AttachableVolume]bool{}}
}

// attachedBy are the attachments of the pods of a bin, those that have none left out.
func (b *volumeBook) attachedBy(full *bin) []attachments {
	if len(b.typical) == 0 {
		return nil
	}
	var all []attachments
	for i := range full.content {
		for _, pod := range full.content[i].pods {
			if needs := b.needs(pod); !needs.attach.none() {
				all = append(all, needs.attach)
			}
		}
	}
	return all
}

// bears says whether a new node of an instance type attaches all of these.
func (b *volumeBook) bears(instanceType string, needs []attachments) bool {
	room := b.newRoom(instanceType)
	for i := range needs {
		if room.holds(&needs[i], 1) < 1 {
			return false
		}
		room.put(&needs[i], 1)
	}
	return true
}

// room is the room on a node with the pods it has.
func (b *volumeBook) room(n *Node) *attachRoom {
	left := map[string]int{}
	if !n.Initialized {
		maps.Copy(left, b.typical[n.InstanceType]) // drivers that are still starting have told no limit
	}
	maps.Copy(left, n.AttachLimits)
	if len(left) == 0 {
		return nil
	}
	r := &attachRoom{left: left, mounted: map[AttachableVolume]bool{}}
	for _, pod := range n.Pods {
		if pod.Mounts == nil || pod.Terminal {
			continue
		}
		for _, volume := range b.mounted(pod) {
			r.mount(volume)
		}
	}
	for _, name := range n.Attached {
		// What is attached and mounted by no pod here still takes its place, until it is detached.
		if volume := b.storage.Volumes[name]; volume != nil {
			r.mount(volume.AttachableVolume)
		}
	}
	return r
}

// mounted are the volumes of a pod that has a node. What cannot be found is not counted, as the kube-scheduler does not.
func (b *volumeBook) mounted(pod *Pod) []AttachableVolume {
	volumes := slices.Clone(pod.Mounts.Inline)
	for i := range pod.Mounts.Claims {
		key := pod.Namespace + "/" + pod.Mounts.Claims[i].Name
		claim := b.storage.Claims[key]
		if claim == nil {
			continue
		}
		if volume := b.storage.Volumes[claim.Volume]; volume != nil {
			volumes = append(volumes, volume.AttachableVolume)
			continue
		}
		class := b.storage.defaultClass()
		if claim.Class != nil {
			class = b.storage.Classes[*claim.Class]
		}
		if class != nil {
			volumes = append(volumes, AttachableVolume{Driver: class.Provisioner, Handle: "claim " + key})
		}
	}
	return volumes
}

func (r *attachRoom) mount(volume AttachableVolume) {
	if _, limited := r.left[volume.Driver]; !limited || r.mounted[volume] {
		return
	}
	r.mounted[volume] = true
	r.left[volume.Driver]--
}

// holds says how many pods that attach the same, at most so many, find room.
func (r *attachRoom) holds(a *attachments, most int) int {
	if r == nil || a.none() || most <= 0 {
		return most
	}
	needed := map[string]int{}
	for _, volume := range a.shared {
		if !r.mounted[volume] {
			needed[volume.Driver]++
		}
	}
	for _, own := range a.own {
		needed[own.driver] += 0
	}
	for driver, once := range needed {
		left, limited := r.left[driver]
		if !limited {
			continue
		}
		each := 0
		if at := slices.IndexFunc(a.own, func(c driverCount) bool { return c.driver == driver }); at >= 0 {
			each = a.own[at].count
		}
		switch {
		case once+each > left:
			return 0
		case each > 0:
			most = min(most, (left-once)/each)
		}
	}
	return most
}

// put takes the room of n pods that attach the same.
func (r *attachRoom) put(a *attachments, n int) {
	if r == nil || n == 0 {
		return
	}
	for _, volume := range a.shared {
		r.mount(volume)
	}
	for _, own := range a.own {
		if _, limited := r.left[own.driver]; limited {
			r.left[own.driver] -= own.count * n
		}
	}
}

// clone returns a room of its own.
func (r *attachRoom) clone() *attachRoom {
	if r == nil {
		return nil
	}
	return &attachRoom{left: maps.Clone(r.left), mounted: maps.Clone(r.mounted)}
}
