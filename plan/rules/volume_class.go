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

// named is the StorageClass that a claim names, or gets because it names none.
func (b *VolumeIndex) named(claim *model.VolumeClaim) *model.StorageClass {
	if claim.Class == nil {
		return b.storage.DefaultClass()
	}
	return b.storage.Classes[*claim.Class]
}

// classOf finds the StorageClass of an unbound claim, or says why no pod can bring it a volume.
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

// selected is about a volume that is being made for a node.
func (b *VolumeIndex) selected(at location, name string, class *model.StorageClass) location {
	for _, n := range b.Snapshot.Nodes {
		if n.Name != name {
			continue
		}
		at.places = []model.Term{{model.NewCondition(corev1.LabelHostname, corev1.NodeSelectorOpIn, []string{cmp.Or(n.Labels[corev1.LabelHostname], name)})}}
		if class.Topology != nil {
			at.places = model.Both(at.places, class.Topology.Alternatives)
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
	// inTreePrefix begins the names of the in-tree provisioners. Those that no CSI driver has replaced are not part of
	// Kubernetes any more, but for hostPathProvisioner, the one of single-node test clusters.
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
	if class.Topology == nil {
		return ""
	}
	var unknown []string
	for _, alternative := range class.Topology.Alternatives {
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

// labelled says whether a node that is there or may come can have a label.
func (b *VolumeIndex) labelled(key string) bool {
	if key == corev1.LabelHostname || karpv1.WellKnownLabels().Has(key) {
		return true
	}
	for _, n := range b.Snapshot.Nodes {
		if _, ok := n.Labels[key]; ok {
			return true
		}
	}
	for _, pool := range b.Snapshot.NodePools {
		if _, ok := pool.Spec.Template.Labels[key]; ok {
			return true
		}
		if slices.ContainsFunc(pool.Spec.Template.Spec.Requirements, func(r karpv1.NodeSelectorRequirementWithMinValues) bool { return r.Key == key }) {
			return true
		}
	}
	return false
}
