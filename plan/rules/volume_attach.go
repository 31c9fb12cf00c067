package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/plan/model"
)

// None says that nothing has to be attached.
func (a *Attachments) None() bool { return len(a.volumes) == 0 }

// id tells settled attachments apart.
func (a *Attachments) id() string {
	var id strings.Builder
	for _, volume := range a.volumes {
		fmt.Fprintf(&id, "\x03%s\x00%s", volume.Driver, volume.Handle)
	}
	return id.String()
}

// settle brings the attachments into canonical form: a volume that other pods mount counts once, however often it is named.
func (a *Attachments) settle() {
	slices.SortFunc(a.volumes, func(x, y model.AttachableVolume) int {
		return cmp.Or(cmp.Compare(x.Driver, y.Driver), cmp.Compare(x.Handle, y.Handle))
	})
	a.volumes = slices.CompactFunc(a.volumes, func(x, y model.AttachableVolume) bool { return x == y && x.Handle != "" })
}

// attach adds a volume. It leaves out volumes of drivers without limits, so that pods do not differ by them.
func (b *VolumeIndex) attach(to *Attachments, volume model.AttachableVolume, shared bool) {
	if !shared {
		volume.Handle = ""
	}
	if b.limited[volume.Driver] {
		to.volumes = append(to.volumes, volume)
	}
}

// AttachmentRoom is how many volumes a node can still attach. A nil room is one without limits.
type AttachmentRoom struct {
	// left is how many more volumes each driver attaches; a driver without a limit is missing.
	left map[string]int
	// mounted are the volumes of the node's pods.
	mounted map[model.AttachableVolume]bool
}

// NewRoom returns the room on a new node of an instance type, as far as nodes of the same type show it.
func (b *VolumeIndex) NewRoom(instanceType string) *AttachmentRoom {
	if len(b.Typical[instanceType]) == 0 {
		return nil
	}
	return &AttachmentRoom{left: maps.Clone(b.Typical[instanceType]), mounted: map[model.AttachableVolume]bool{}}
}

// Bears says whether a new node of an instance type can attach all of these.
func (b *VolumeIndex) Bears(instanceType string, needs []Attachments) bool {
	room := b.NewRoom(instanceType)
	for i := range needs {
		if room.Holds(&needs[i], 1) < 1 {
			return false
		}
		room.Put(&needs[i], 1)
	}
	return true
}

// Room is the room on a node with the pods it has.
func (b *VolumeIndex) Room(n *model.Node) *AttachmentRoom {
	left := map[string]int{}
	if !n.Initialized {
		maps.Copy(left, b.Typical[n.InstanceType]) // drivers that are still starting have not reported a limit
	}
	maps.Copy(left, n.AttachLimits)
	if len(left) == 0 {
		return nil
	}
	r := &AttachmentRoom{left: left, mounted: map[model.AttachableVolume]bool{}}
	for _, pod := range n.Pods {
		if pod.Mounts == nil || pod.Terminal {
			continue
		}
		for _, volume := range b.mounted(pod) {
			r.mount(volume)
		}
	}
	for _, name := range n.Attached {
		// A volume that is attached, but mounted by no pod here, takes up room until it is detached.
		if volume := b.storage.Volumes[name]; volume != nil {
			r.mount(volume.AttachableVolume)
		}
	}
	return r
}

// mounted returns the volumes of a pod that has a node. Like the kube-scheduler, it does not count what cannot be found.
func (b *VolumeIndex) mounted(pod *model.Pod) []model.AttachableVolume {
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
		if class := b.named(claim); class != nil {
			volumes = append(volumes, model.AttachableVolume{Driver: class.Provisioner, Handle: "claim " + key})
		}
	}
	return volumes
}

func (r *AttachmentRoom) mount(volume model.AttachableVolume) {
	if _, limited := r.left[volume.Driver]; !limited || r.mounted[volume] {
		return
	}
	r.mounted[volume] = true
	r.left[volume.Driver]--
}

// Holds says how many pods with these attachments have room, up to most.
func (r *AttachmentRoom) Holds(a *Attachments, most int) int {
	if r == nil || a.None() || most <= 0 {
		return most
	}
	for driver, left := range r.left {
		each, once := 0, 0
		for _, volume := range a.volumes {
			switch {
			case volume.Driver != driver || r.mounted[volume]:
			case volume.Handle == "":
				each++
			default:
				once++
			}
		}
		switch {
		case once+each > max(0, left):
			return 0
		case each > 0:
			most = min(most, (left-once)/each)
		}
	}
	return most
}

// Put takes up the room of n pods with these attachments.
func (r *AttachmentRoom) Put(a *Attachments, n int) {
	if r == nil || n == 0 {
		return
	}
	for _, volume := range a.volumes {
		if _, limited := r.left[volume.Driver]; limited && volume.Handle == "" {
			r.left[volume.Driver] -= n
			continue
		}
		r.mount(volume)
	}
}

// Clone returns an independent copy.
func (r *AttachmentRoom) Clone() *AttachmentRoom {
	if r == nil {
		return nil
	}
	return &AttachmentRoom{left: maps.Clone(r.left), mounted: maps.Clone(r.mounted)}
}
