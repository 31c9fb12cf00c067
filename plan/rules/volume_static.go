package rules

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenon-sh/tenon/plan/model"
)

// An existing volume can serve only one claim. The claims of waiting pods get free volumes in the order of the
// kube-scheduler's queue; a claim gets none only if no other distribution serves it without leaving an earlier claim with
// none.

// seeker is a claim that looks for a volume made by hand.
type seeker struct {
	key string // of the claim
	// free are the volumes it matches, the smallest first, as the kube-scheduler takes them.
	free []*model.Volume
}

// distributed assigns the free volumes of a class to the claims of waiting pods: one to each claim that competes with
// others, and to the other claims all that they match.
func (b *VolumeIndex) distributed(class *model.StorageClass) map[string][]*model.Volume {
	if known, ok := b.given[class]; ok {
		return known
	}
	seekers := b.seekers(class)
	wanted, taken := map[*model.Volume]int{}, map[*model.Volume]*seeker{}
	for _, s := range seekers {
		for _, volume := range s.free {
			wanted[volume]++
		}
		s.seat(taken, map[*model.Volume]bool{})
	}
	result := map[string][]*model.Volume{}
	for _, s := range seekers {
		result[s.key] = s.free
		if slices.ContainsFunc(s.free, func(v *model.Volume) bool { return wanted[v] > 1 }) {
			result[s.key] = slices.DeleteFunc(slices.Clone(s.free), func(v *model.Volume) bool { return taken[v] != s })
		}
	}
	b.given[class] = result
	return result
}

// seat finds a volume for a seeker. Where it helps, it moves earlier seekers to other volumes that they match (an
// augmenting path).
func (s *seeker) seat(taken map[*model.Volume]*seeker, tried map[*model.Volume]bool) bool {
	if i := slices.IndexFunc(s.free, func(v *model.Volume) bool { return taken[v] == nil }); i >= 0 {
		taken[s.free[i]] = s
		return true
	}
	for _, volume := range s.free {
		if tried[volume] {
			continue
		}
		tried[volume] = true
		if taken[volume].seat(taken, tried) {
			taken[volume] = s
			return true
		}
	}
	return false
}

// seekers returns the claims of a class that have no volume and that waiting pods mount, in the order of the
// kube-scheduler's queue.
func (b *VolumeIndex) seekers(class *model.StorageClass) []*seeker {
	waiting := slices.DeleteFunc(slices.Clone(b.Snapshot.Pending), func(p *model.Pod) bool { return p.Mounts == nil || p.Virtual || !p.Provisionable() })
	slices.SortFunc(waiting, inQueue)
	var seekers []*seeker
	seen := map[string]bool{}
	for _, pod := range waiting {
		for i := range pod.Mounts.Claims {
			key, claim := b.claimOf(pod, &pod.Mounts.Claims[i])
			if seen[key] || claim == nil || claim.Volume != "" || claim.SelectedNode != "" || claim.Deleting || claim.Lost {
				continue
			}
			seen[key] = true
			if wanted, refusal := b.classOf(claim); refusal != "" || wanted != class {
				continue
			}
			free := slices.Clone(b.matching(key, claim, class))
			slices.SortFunc(free, func(x, y *model.Volume) int {
				return cmp.Or(cmp.Compare(x.Bytes, y.Bytes), cmp.Compare(x.Name, y.Name))
			})
			seekers = append(seekers, &seeker{key: key, free: free})
		}
	}
	return seekers
}

// claimOf returns a claim that a pod mounts, and its key: the claim that exists, or the one that its template will become;
// nil if there is neither.
func (b *VolumeIndex) claimOf(pod *model.Pod, mount *model.MountedClaim) (string, *model.VolumeClaim) {
	key := pod.Namespace + "/" + mount.Name
	claim := b.storage.Claims[key]
	if claim == nil && mount.Ephemeral != nil {
		claim = &model.VolumeClaim{ClaimSpec: *mount.Ephemeral, Namespace: pod.Namespace, Name: mount.Name, Pod: pod.UID}
	}
	return key, claim
}

// own returns those of the volumes a claim matches that it need not share with other claims.
func (b *VolumeIndex) own(key string, class *model.StorageClass, free []*model.Volume) []*model.Volume {
	// A pod that does not wait in the queue, such as one that has to leave its node, may have any of them.
	if given, waits := b.distributed(class)[key]; waits {
		return given
	}
	return free
}

// handMade locates a claim of a class that makes no volumes.
func (b *VolumeIndex) handMade(at location, key string, class *model.StorageClass, free []*model.Volume) location {
	if len(free) == 0 {
		at.refusal = fmt.Sprintf("matches no free volume, and its StorageClass %s makes none", class.Name)
		return at
	}
	if free = b.own(key, class, free); len(free) == 0 {
		at.refusal = fmt.Sprintf("matches only volumes that other claims wait for, and its StorageClass %s makes none", class.Name)
		return at
	}
	if len(free) == 1 {
		at.volume = free[0].AttachableVolume
	}
	return either(at, nil, free)
}

// matching returns the existing volumes that would be bound to a claim, as k8s.io/component-helpers/storage/volume chooses
// them; which of them it is depends on the node.
func (b *VolumeIndex) matching(key string, claim *model.VolumeClaim, class *model.StorageClass) []*model.Volume {
	var matching []*model.Volume
	for _, volume := range b.kept[key] {
		if holds(volume, claim) && (volume.ClaimUID == "" || volume.ClaimUID == claim.UID) {
			matching = append(matching, volume)
		}
	}
	if len(matching) > 0 {
		return matching // volumes reserved for a claim have precedence over free ones, even if out of reach
	}
	selector := labels.Everything()
	if claim.Selector != nil {
		selector = model.Selector(claim.Selector)
	}
	for _, volume := range b.free[class.Name] {
		lacks := func(mode corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(volume.Modes, mode) }
		if holds(volume, claim) && !slices.ContainsFunc(claim.Modes, lacks) && selector.Matches(labels.Set(volume.Labels)) {
			matching = append(matching, volume)
		}
	}
	return matching
}

// holds says whether the volume is large enough for a claim and has its volume mode.
func holds(v *model.Volume, claim *model.VolumeClaim) bool {
	return v.Bytes >= claim.Bytes && v.Block == claim.Block
}

// either restricts a location to a class's places and those of the free volumes.
func either(at location, places []model.Term, free []*model.Volume) location {
	all := slices.Clone(places)
	for _, volume := range free {
		if volume.Places == nil {
			return at
		}
		all = append(all, volume.Places...)
	}
	if at.places = model.Simplified(all); len(at.places) == 0 {
		at.refusal = "matches only volumes whose node affinity matches no node"
	}
	return at
}
