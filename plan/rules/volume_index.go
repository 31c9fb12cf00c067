package rules

import (
	"cmp"

	"github.com/tenon-sh/tenon/plan/model"
)

// Attachments are the volumes that a pod's node has to attach, of drivers that limit how many a node can.
type Attachments struct {
	// own counts, by driver, the volumes that no other pod mounts.
	own map[string]int
	// shared are the volumes that others mount as well, ordered: they count once for all pods on a node.
	shared []model.AttachableVolume
}

// VolumeNeeds is what a pod's volumes ask of its node.
type VolumeNeeds struct {
	// Key is equal for pods of one snapshot whose volumes ask the same; empty where they ask nothing.
	Key string
	// alternatives are conditions on the node's labels, under the keys that machines are described with; meeting one of
	// them is enough. Nil admits every node.
	alternatives []model.Term
	// Attach are the volumes that the node has to attach.
	Attach Attachments
	// Refusal says why no node would do; empty if one may.
	Refusal string
}

// VolumeIndex knows what the volumes of one snapshot's pods need. It decides as the kube-scheduler's plugins
// VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits do, except that
//   - a generic ephemeral volume whose claim has not been made yet counts as its template says it will be;
//   - a claim that names no StorageClass is taken to get the default one, as it will;
//   - capacity that drivers publish (CSIStorageCapacity) is not looked at: it is known only for nodes that exist.
type VolumeIndex struct {
	Snapshot *model.Snapshot
	storage  *model.Storage
	// users are the pods that mount a claim, by its key. Pods that have ended are not among them. They are found when the
	// first pod with volumes asks.
	users map[string][]*model.Pod
	// limited are the drivers that limit what some node can attach.
	limited map[string]bool
	// Typical are the attach limits of nodes, by instance type and driver.
	Typical map[string]map[string]int
	// free are the volumes that a claim may be bound to, by StorageClass; kept those kept for one claim, by its key. They
	// are found when the first claim without volume is looked at.
	free map[string][]*model.Volume
	kept map[string][]*model.Volume
	// given is who gets which free volume of a class.
	given map[*model.StorageClass]map[string]given
	// known remembers the answers that do not depend on which pod of a Mounts asks.
	known map[*model.Mounts]VolumeNeeds
}

// location is where one volume is, or may be made.
type location struct {
	// places are the alternatives for the labels of a node; nil admits every node.
	places []model.Term
	// volume is what has to be attached, with a made-up handle before the volume exists.
	volume model.AttachableVolume
	// refusal says why the volume cannot be used, as the end of a sentence about the claim.
	refusal string
	// personal says that another pod with the same mounts may get another answer.
	personal bool
}

// inQueue compares by the order of the kube-scheduler's queue, as far as a snapshot shows it.
func inQueue(a, b *model.Pod) int {
	return cmp.Or(-cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// given is what became of a seeker.
type given struct {
	// volume is the one it gets; nil if there is none left.
	volume *model.Volume
	// rivals says that others look for the volumes it matches.
	rivals bool
}
