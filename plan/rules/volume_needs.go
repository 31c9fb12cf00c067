package rules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Restrict combines a pod's own alternatives with those of its volumes.
func (n *VolumeNeeds) Restrict(terms []model.Term) []model.Term {
	if n.alternatives == nil {
		return terms
	}
	return model.Both(terms, n.alternatives)
}

// Needs returns what a pod's volumes ask of its node.
func (b *VolumeIndex) Needs(pod *model.Pod) VolumeNeeds {
	if pod.Mounts == nil {
		return VolumeNeeds{}
	}
	needs, refusal := b.work(pod)
	if refusal != "" {
		return VolumeNeeds{Key: "refused\x00" + refusal, Refusal: refusal}
	}
	needs.Key = model.IdOf(needs.alternatives) + needs.Attach.id()
	return needs
}

// maxAlternatives limits the alternatives that a pod's volumes multiply to. All zones or hosts of one volume are a single
// alternative, so that only volumes that are each in many places by several labels come near the limit. Alternatives beyond
// it are left out: the pod then has less choice than it might, but is never misplaced.
const maxAlternatives = 64

// work derives the needs from each volume. It refuses if there is one that the pod cannot use.
func (b *VolumeIndex) work(pod *model.Pod) (needs VolumeNeeds, refusal string) {
	var placed []string
	for i := range pod.Mounts.Claims {
		mount := &pod.Mounts.Claims[i]
		at := b.locate(pod, mount)
		if at.refusal != "" {
			return VolumeNeeds{}, fmt.Sprintf("persistent volume claim %q %s", mount.Name, at.refusal)
		}
		b.attach(&needs.Attach, at.volume, len(b.users[pod.Namespace+"/"+mount.Name]) > 1)
		if at.places == nil {
			continue
		}
		placed = append(placed, fmt.Sprintf("%q (%s)", mount.Name, inWords(at.places)))
		if len(placed) == 1 {
			needs.alternatives = at.places
			continue
		}
		both := model.Simplified(model.Both(needs.alternatives, at.places))
		if len(both) == 0 {
			return VolumeNeeds{}, "no node reaches its persistent volume claims together: " + strings.Join(placed, ", ")
		}
		needs.alternatives = both[:min(len(both), maxAlternatives)]
	}
	for _, inline := range pod.Mounts.Inline {
		b.attach(&needs.Attach, inline, true)
	}
	needs.Attach.settle()
	return needs, ""
}

// locate finds the volume behind a claim.
func (b *VolumeIndex) locate(pod *model.Pod, mount *model.MountedClaim) location {
	key, claim := b.claimOf(pod, mount)
	switch {
	case claim == nil:
		return location{refusal: "does not exist"}
	case mount.Ephemeral != nil && claim.Pod != pod.UID:
		return location{refusal: "exists already and is not the pod's own, which its ephemeral volume needs"}
	case claim.Deleting:
		return location{refusal: "is being deleted"}
	case claim.Lost:
		return location{refusal: fmt.Sprintf("has lost its volume %s", claim.Volume)}
	}
	locate := b.unbound
	if claim.Volume != "" {
		locate = b.bound
	}
	at := locate(key, claim)
	if !slices.Contains(claim.Modes, corev1.ReadWriteOncePod) {
		return at
	}
	switch user := b.before(key, pod); {
	case user == nil || at.refusal != "":
	case user.Node == "":
		at.refusal = fmt.Sprintf("is for one pod at a time, and %s comes first", user.Key())
	default:
		at.refusal = fmt.Sprintf("is for one pod at a time, and %s uses it", user.Key())
	}
	return at
}

// before returns the pod that keeps another from using a claim with access mode ReadWriteOncePod: one that has a node, or
// else the waiting pod that the kube-scheduler tries first.
func (b *VolumeIndex) before(key string, pod *model.Pod) *model.Pod {
	var first *model.Pod
	for _, user := range b.users[key] {
		switch {
		case user.UID == pod.UID || user.Virtual:
		case user.Node != "":
			return user
		case pod.Node != "" || !user.Provisionable():
		case inQueue(user, pod) < 0 && (first == nil || inQueue(user, first) < 0):
			first = user
		}
	}
	return first
}

// bound locates a claim that has a volume.
func (b *VolumeIndex) bound(key string, claim *model.VolumeClaim) location {
	volume := b.storage.Volumes[claim.Volume]
	switch {
	case volume == nil:
		return location{refusal: fmt.Sprintf("is bound to volume %s, which does not exist", claim.Volume)}
	case volume.Deleting:
		return location{refusal: fmt.Sprintf("is bound to volume %s, which is being deleted", claim.Volume)}
	case volume.Claim != "" && volume.Claim != key:
		return location{refusal: fmt.Sprintf("asks for volume %s, which belongs to claim %s", claim.Volume, volume.Claim)}
	}
	at := location{places: volume.Places, volume: volume.AttachableVolume}
	if at.places != nil && len(at.places) == 0 {
		at.refusal = fmt.Sprintf("is bound to volume %s, whose node affinity matches no node", claim.Volume)
	}
	return at
}

// unbound locates a claim that will get its volume when the pod has a node.
func (b *VolumeIndex) unbound(key string, claim *model.VolumeClaim) location {
	class, refusal := b.classOf(claim)
	if refusal != "" {
		return location{refusal: refusal}
	}
	at := location{volume: model.AttachableVolume{Driver: class.Provisioner, Handle: "claim " + key}}
	var free []*model.Volume
	if claim.SelectedNode == "" {
		free = b.matching(key, claim, class)
	}
	if class.Provisioner == "" || class.Provisioner == noProvisioner {
		at.volume = model.AttachableVolume{}
		return b.handMade(at, key, class, free)
	}
	if refusal := b.unprovided(class); refusal != "" && len(free) == 0 {
		return location{refusal: refusal}
	}
	switch {
	case claim.SelectedNode != "":
		return b.selected(at, claim.SelectedNode, class)
	case class.Places == nil:
		return at
	}
	return either(at, class.Places, b.own(key, class, free))
}

// inWords is for people.
func inWords(places []model.Term) string {
	words := make([]string, len(places))
	for i, t := range places {
		words[i] = t.String()
	}
	return strings.Join(words, ", or ")
}
