package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Attachments are the volumes that a pod's node has to attach, of drivers that limit how many a node can.
type Attachments struct {
	// volumes are ordered. Those that no other pod mounts have no handle; the others count once for all pods on a node.
	volumes []model.AttachableVolume
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
	// users are the pods that mount a claim, by its key. Pods that have ended are not among them.
	users map[string][]*model.Pod
	// limited are the drivers that limit what some node can attach.
	limited map[string]bool
	// Typical are the attach limits of nodes, by instance type and driver.
	Typical map[string]map[string]int
	// free are the volumes that any claim may be bound to, by StorageClass; kept are those reserved for one claim, by its
	// key.
	free map[string][]*model.Volume
	kept map[string][]*model.Volume
	// given are the free volumes of a class that the claims of pods that wait may have, by the claim's key.
	given map[*model.StorageClass]map[string][]*model.Volume
}

// location is where one volume is, or may be made.
type location struct {
	// places are the alternatives for the labels of a node; nil admits every node.
	places []model.Term
	// volume is what has to be attached, with a made-up handle before the volume exists.
	volume model.AttachableVolume
	// refusal says why the volume cannot be used, as the end of a sentence about the claim.
	refusal string
}

// Volumes indexes the snapshot's volumes.
func Volumes(s *model.Snapshot) *VolumeIndex {
	b := &VolumeIndex{
		Snapshot: s,
		storage:  &s.Storage,
		users:    map[string][]*model.Pod{},
		limited:  map[string]bool{},
		Typical:  map[string]map[string]int{},
		free:     map[string][]*model.Volume{},
		kept:     map[string][]*model.Volume{},
		given:    map[*model.StorageClass]map[string][]*model.Volume{},
	}
	b.use(s.Pending)
	for _, n := range s.Nodes {
		b.learn(n)
		b.use(n.Pods)
	}
	b.findFree()
	return b
}

// learn records the attach limits of a node. Nodes of one type may differ by what else is attached to them; the lowest
// limit counts.
func (b *VolumeIndex) learn(n *model.Node) {
	for driver, limit := range n.AttachLimits {
		b.limited[driver] = true
		if n.InstanceType == "" {
			continue
		}
		if b.Typical[n.InstanceType] == nil {
			b.Typical[n.InstanceType] = map[string]int{}
		}
		if least, ok := b.Typical[n.InstanceType][driver]; !ok || limit < least {
			b.Typical[n.InstanceType][driver] = limit
		}
	}
}

// use records which claims pods mount.
func (b *VolumeIndex) use(pods []*model.Pod) {
	for _, pod := range pods {
		for _, name := range pod.Mounts.Names() {
			if key := pod.Namespace + "/" + name; !pod.Terminal {
				b.users[key] = append(b.users[key], pod)
			}
		}
	}
}

// findFree finds the volumes that are not bound yet.
func (b *VolumeIndex) findFree() {
	for _, volume := range b.storage.Volumes {
		switch {
		case volume.Deleting:
		case volume.Claim != "":
			if claim := b.storage.Claims[volume.Claim]; claim == nil || claim.Volume == "" {
				b.kept[volume.Claim] = append(b.kept[volume.Claim], volume)
			}
		case volume.Available:
			b.free[volume.Class] = append(b.free[volume.Class], volume)
		}
	}
}

// inQueue compares by the order of the kube-scheduler's queue, as far as a snapshot shows it.
func inQueue(a, b *model.Pod) int {
	return cmp.Or(-cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// named is the StorageClass that a claim names, or gets because it names none.
func (b *VolumeIndex) named(claim *model.VolumeClaim) *model.StorageClass {
	if claim.Class == nil {
		return b.storage.DefaultClass()
	}
	return b.storage.Classes[*claim.Class]
}

// classOf finds the StorageClass of an unbound claim, or says why placing a pod cannot bring it a volume.
func (b *VolumeIndex) classOf(claim *model.VolumeClaim) (*model.StorageClass, string) {
	switch class := b.named(claim); {
	case class != nil && class.Delayed:
		return class, ""
	case claim.Class == nil && class == nil:
		return nil, "has no volume and names no StorageClass, and there is no default one"
	case class == nil && *claim.Class == "":
		return nil, "has no volume and wants none to be made for it: it names no StorageClass"
	case class == nil:
		return nil, fmt.Sprintf("names StorageClass %s, which does not exist", *claim.Class)
	default:
		return nil, fmt.Sprintf("has no volume yet: its StorageClass %s has the volumeBindingMode Immediate, so that it has to be bound first", class.Name)
	}
}

// selected locates a volume that is being made for a node.
func (b *VolumeIndex) selected(at location, name string, class *model.StorageClass) location {
	for _, n := range b.Snapshot.Nodes {
		if n.Name != name {
			continue
		}
		at.places = []model.Term{{model.NewCondition(corev1.LabelHostname, corev1.NodeSelectorOpIn, []string{cmp.Or(n.Labels[corev1.LabelHostname], name)})}}
		if class.Places != nil {
			at.places = model.Simplified(model.Both(at.places, class.Places))
		}
		if len(at.places) == 0 {
			at.refusal = fmt.Sprintf("waits for a volume that is made for node %s, where its StorageClass %s allows none", name, class.Name)
		}
		return at
	}
	at.refusal = fmt.Sprintf("waits for a volume that is made for node %s, which is gone", name)
	return at
}

const (
	// inTreePrefix begins the names of the in-tree provisioners. Those that no CSI driver has replaced have been removed
	// from Kubernetes, except hostPathProvisioner, the one of single-node test clusters.
	inTreePrefix        = "kubernetes.io/"
	hostPathProvisioner = inTreePrefix + "host-path"
	// noProvisioner is the provisioner of classes whose volumes are made by hand.
	noProvisioner = inTreePrefix + "no-provisioner"
)

// unprovided says why a class's provisioner cannot make a volume for any node; empty if it may.
func (b *VolumeIndex) unprovided(class *model.StorageClass) string {
	if strings.HasPrefix(class.Provisioner, inTreePrefix) && class.Provisioner != hostPathProvisioner {
		return fmt.Sprintf("waits for a volume of StorageClass %s, whose provisioner %s is not part of Kubernetes any more", class.Name, class.Provisioner)
	}
	if class.Places == nil {
		return ""
	}
	var unknown []string
	for _, alternative := range class.Places {
		at := slices.IndexFunc(alternative, func(c model.Condition) bool { return !b.labelled(c.Key) })
		if at < 0 {
			return ""
		}
		unknown = append(unknown, alternative[at].Key)
	}
	if unknown == nil {
		return fmt.Sprintf("waits for a volume of StorageClass %s, whose allowedTopologies match no node", class.Name)
	}
	slices.Sort(unknown)
	return fmt.Sprintf("waits for a volume of StorageClass %s, whose allowedTopologies need the label %s, which no node has and no NodePool defines",
		class.Name, strings.Join(slices.Compact(unknown), " or "))
}

// labelled says whether an existing or future node can have a label.
func (b *VolumeIndex) labelled(key string) bool {
	onNode := func(n *model.Node) bool { _, ok := n.Labels[key]; return ok }
	asked := func(r karpv1.NodeSelectorRequirementWithMinValues) bool { return r.Key == key }
	inPool := func(pool *karpv1.NodePool) bool {
		_, ok := pool.Spec.Template.Labels[key]
		return ok || slices.ContainsFunc(pool.Spec.Template.Spec.Requirements, asked)
	}
	return key == corev1.LabelHostname || karpv1.WellKnownLabel(key) || slices.Contains(b.Snapshot.LabelKeys.OfType, key) ||
		slices.ContainsFunc(b.Snapshot.Nodes, onNode) || slices.ContainsFunc(b.Snapshot.NodePools, inPool)
}
