package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// volumeNeeds is what a pod's volumes ask of its node.
type volumeNeeds struct {
	// key is equal for pods of one snapshot whose volumes ask the same; empty where they ask nothing.
	key string
	// alternatives are conditions on the node's labels, under the keys that machines are described with; meeting one of
	// them is enough. Nil admits every node.
	alternatives []term
	// attach are the volumes that the node has to attach.
	attach attachments
	// refusal says why no node would do; empty if one may.
	refusal string
}

// restrict returns the alternatives that meet a pod's own and its volumes'.
func (n *volumeNeeds) restrict(terms []term) []term {
	if n.alternatives == nil {
		return terms
	}
	var restricted []term
	for _, t := range terms {
		for _, place := range n.alternatives {
			restricted = append(restricted, slices.Concat(t, place))
		}
	}
	return restricted
}

// volumeBook knows what the volumes of one snapshot's pods need. It decides as the kube-scheduler's plugins
// VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits do, except that
//   - a generic ephemeral volume whose claim has not been made yet counts as its template says it will be;
//   - a claim that names no StorageClass is taken to get the default one, as it will;
//   - capacity that drivers publish (CSIStorageCapacity) is not looked at: it is known only for nodes that exist.
type volumeBook struct {
	snapshot *Snapshot
	storage  *Storage
	// users are the pods that mount a claim, by its key. Pods that have ended are not among them. They are found when the
	// first pod with volumes asks.
	users map[string][]*Pod
	// limited are the drivers that limit what some node can attach.
	limited map[string]bool
	// typical are the attach limits of nodes, by instance type and driver.
	typical map[string]map[string]int
	// free are the volumes that a claim may be bound to, by StorageClass; kept those kept for one claim, by its key. They
	// are found when the first claim without volume is looked at.
	free map[string][]*Volume
	kept map[string][]*Volume
	// given is who gets which free volume of a class.
	given map[*StorageClass]map[string]given
	// known remembers the answers that do not depend on which pod of a Mounts asks.
	known map[*Mounts]volumeNeeds
}

// volumes opens the book on the snapshot's volumes.
func (s *Snapshot) volumes() *volumeBook {
	b := &volumeBook{
		snapshot: s,
		storage:  &s.Storage,
		limited:  map[string]bool{},
		typical:  map[string]map[string]int{},
		given:    map[*StorageClass]map[string]given{},
		known:    map[*Mounts]volumeNeeds{},
	}
	for _, n := range s.Nodes {
		b.learn(n)
	}
	return b
}

// findUsers finds who mounts which claim.
func (b *volumeBook) findUsers() {
	b.users = map[string][]*Pod{}
	for _, pod := range b.snapshot.Pending {
		b.register(pod)
	}
	for _, n := range b.snapshot.Nodes {
		for _, pod := range n.Pods {
			b.register(pod)
		}
	}
}

func (b *volumeBook) register(pod *Pod) {
	if pod.Mounts == nil || pod.Terminal {
		return
	}
	for _, name := range pod.Mounts.Names() {
		key := pod.Namespace + "/" + name
		b.users[key] = append(b.users[key], pod)
	}
}

// needs returns what a pod's volumes ask of its node.
func (b *volumeBook) needs(pod *Pod) volumeNeeds {
	if pod.Mounts == nil {
		return volumeNeeds{}
	}
	if known, ok := b.known[pod.Mounts]; ok {
		return known
	}
	needs, shared := b.work(pod)
	if needs.refusal != "" {
		needs = volumeNeeds{key: "refused\x00" + needs.refusal, refusal: needs.refusal}
	} else {
		needs.key = idOf(needs.alternatives) + needs.attach.id()
	}
	if shared {
		b.known[pod.Mounts] = needs
	}
	return needs
}

// work looks at each volume. It says whether the answer holds for every pod that mounts the same.
func (b *volumeBook) work(pod *Pod) (needs volumeNeeds, shared bool) {
	if b.users == nil {
		b.findUsers()
	}
	shared = true
	places := []term{{}}
	var placed []string
	for i := range pod.Mounts.Claims {
		mount := &pod.Mounts.Claims[i]
		at := b.locate(pod, mount)
		shared = shared && !at.personal
		if at.refusal != "" {
			needs.refusal = fmt.Sprintf("persistent volume claim %q %s", mount.Name, at.refusal)
			return needs, shared
		}
		b.attach(&needs.attach, at.volume, len(b.users[pod.Namespace+"/"+mount.Name]) > 1)
		if at.places == nil {
			continue
		}
		placed = append(placed, fmt.Sprintf("%q (%s)", mount.Name, inWords(at.places)))
		places = both(places, at.places)
		if len(places) == 0 {
			needs.refusal = "no node reaches its persistent volume claims together: " + strings.Join(placed, ", ")
			return needs, shared
		}
	}
	for _, inline := range pod.Mounts.Inline {
		b.attach(&needs.attach, inline, true)
	}
	needs.attach.settle()
	if len(places) != 1 || len(places[0]) > 0 {
		needs.alternatives = places
	}
	return needs, shared
}

// location is where one volume is, or may be made.
type location struct {
	// places are the alternatives for the labels of a node; nil admits every node.
	places []term
	// volume is what has to be attached, with a made-up handle before the volume exists.
	volume AttachableVolume
	// refusal says why the volume cannot be used, as the end of a sentence about the claim.
	refusal string
	// personal says that another pod with the same mounts may get another answer.
	personal bool
}

// locate finds the volume behind a claim.
func (b *volumeBook) locate(pod *Pod, mount *MountedClaim) location {
	key := pod.Namespace + "/" + mount.Name
	claim := b.storage.Claims[key]
	switch {
	case claim == nil && mount.Ephemeral == nil:
		return location{refusal: "does not exist"}
	case claim == nil:
		return b.unbound(key, &VolumeClaim{ClaimSpec: *mount.Ephemeral, Namespace: pod.Namespace, Name: mount.Name})
	case mount.Ephemeral != nil && claim.Pod != pod.UID:
		return location{refusal: "exists already and is not the pod's own, which its ephemeral volume needs", personal: true}
	case claim.Deleting:
		return location{refusal: "is being deleted"}
	case claim.Lost:
		return location{refusal: fmt.Sprintf("has lost its volume %s", claim.Volume)}
	}
	at := b.unbound
	if claim.Volume != "" {
		at = b.bound
	}
	found := at(key, claim)
	if claim.Modes&ReadWriteOncePod != 0 {
		found.personal = true
		if user := b.before(key, pod); user != nil && found.refusal == "" {
			found.refusal = fmt.Sprintf("is for one pod at a time, and %s uses it", user.Key())
			if user.Node == "" {
				found.refusal = fmt.Sprintf("is for one pod at a time, and %s comes first", user.Key())
			}
		}
	}
	return found
}

// before is the pod that keeps another from using a claim of access mode ReadWriteOncePod: one that runs, or among
// those that wait the one the kube-scheduler tries first.
func (b *volumeBook) before(key string, pod *Pod) *Pod {
	var first *Pod
	for _, user := range b.users[key] {
		switch {
		case user.UID == pod.UID || user.Virtual:
		case user.Node != "":
			return user
		case pod.Node != "" || !user.Provisionable():
		case sooner(user, pod) && (first == nil || sooner(user, first)):
			first = user
		}
	}
	return first
}

// sooner is the order of the kube-scheduler's queue, as far as a snapshot shows it.
func sooner(a, b *Pod) bool {
	return cmp.Or(-cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), strings.Compare(string(a.UID), string(b.UID))) < 0
}

// bound locates a claim that has a volume.
func (b *volumeBook) bound(key string, claim *VolumeClaim) location {
	volume := b.storage.Volumes[claim.Volume]
	switch {
	case volume == nil:
		return location{refusal: fmt.Sprintf("is bound to volume %s, which does not exist", claim.Volume)}
	case volume.Deleting:
		return location{refusal: fmt.Sprintf("is bound to volume %s, which is being deleted", claim.Volume)}
	case volume.Claim != "" && volume.Claim != key:
		return location{refusal: fmt.Sprintf("asks for volume %s, which belongs to claim %s", claim.Volume, volume.Claim)}
	}
	return within(location{volume: volume.AttachableVolume}, claim.Volume, volume.Topology)
}

// within is a location bounded by a volume's topology.
func within(at location, volume string, topology *Topology) location {
	if topology == nil {
		return at
	}
	if len(topology.alternatives) == 0 {
		at.refusal = fmt.Sprintf("is bound to volume %s, whose node affinity matches no node", volume)
	}
	at.places = topology.alternatives
	return at
}

// unbound locates a claim that will get its volume when the pod has a node.
func (b *volumeBook) unbound(key string, claim *VolumeClaim) location {
	class, refusal := b.classOf(claim)
	if refusal != "" {
		return location{refusal: refusal}
	}
	at := location{volume: AttachableVolume{Driver: class.Provisioner, Handle: "claim " + key}}
	var free []*Volume
	if claim.SelectedNode == "" {
		free = b.matching(key, claim, class)
	}
	if class.Provisioner == "" || class.Provisioner == noProvisioner {
		at.volume = AttachableVolume{}
		return b.handMade(at, key, class, free)
	}
	if refusal := b.unprovided(class); refusal != "" && len(free) == 0 {
		return location{refusal: refusal}
	}
	switch {
	case claim.SelectedNode != "":
		return b.selected(at, claim.SelectedNode, class)
	case class.Topology == nil:
		return at
	}
	return either(at, class.Topology.alternatives, b.own(key, class, free))
}

// inWords is for people.
func inWords(places []term) string {
	words := make([]string, len(places))
	for i, t := range places {
		words[i] = t.inWords()
	}
	return strings.Join(words, ", or ")
}
