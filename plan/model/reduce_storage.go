package model

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// selectedNodeAnnotation is how the kube-scheduler tells a provisioner which node a volume is for.
	selectedNodeAnnotation = "volume.kubernetes.io/selected-node"
	// defaultClassAnnotation marks the StorageClass of claims that name none; the older form still counts.
	defaultClassAnnotation     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClassAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
	// labelZoneSeparator stands between the zones of a volume that is in several.
	labelZoneSeparator = "__"
)

// ebsDriver attaches EBS volumes.
const ebsDriver = "ebs.csi.aws.com"

// migrated maps in-tree drivers to the CSI drivers that serve their volumes (k8s.io/csi-translation-lib/plugins), as far as
// such volumes exist on EC2.
var migrated = map[string]string{"kubernetes.io/aws-ebs": ebsDriver, "kubernetes.io/portworx-volume": "pxd.portworx.com"}

// mounts returns the Mounts of a pod; nil if it has none. Volumes that exist only for the pod on its node, such as emptyDir
// and configMap, are left out.
func (i *Interner) mounts(pod *corev1.Pod) *Mounts {
	m := &Mounts{}
	for v := range pod.Spec.Volumes {
		switch volume := &pod.Spec.Volumes[v]; {
		case volume.PersistentVolumeClaim != nil:
			m.Claims = append(m.Claims, MountedClaim{Name: i.String(volume.PersistentVolumeClaim.ClaimName)})
		case volume.Ephemeral != nil:
			claim := MountedClaim{Name: pod.Name + "-" + volume.Name, Ephemeral: &ClaimSpec{}}
			if template := volume.Ephemeral.VolumeClaimTemplate; template != nil {
				*claim.Ephemeral = claimSpec(i, &template.ObjectMeta, &template.Spec)
			}
			m.Claims = append(m.Claims, claim)
		case volume.AWSElasticBlockStore != nil:
			m.Inline = append(m.Inline, AttachableVolume{Driver: ebsDriver, Handle: ebsHandle(volume.AWSElasticBlockStore.VolumeID)})
		}
	}
	if len(m.Claims)+len(m.Inline) == 0 {
		return nil
	}
	slices.SortStableFunc(m.Claims, func(a, b MountedClaim) int { return cmp.Compare(a.Name, b.Name) })
	m.Claims = slices.CompactFunc(m.Claims, func(a, b MountedClaim) bool { return a.Name == b.Name })
	return m
}

func claimSpec(i *Interner, meta *metav1.ObjectMeta, spec *corev1.PersistentVolumeClaimSpec) ClaimSpec {
	size := spec.Resources.Requests[corev1.ResourceStorage]
	reduced := ClaimSpec{
		Modes:    slices.Clone(spec.AccessModes),
		Bytes:    size.Value(),
		Block:    ptr.Deref(spec.VolumeMode, "") == corev1.PersistentVolumeBlock,
		Selector: spec.Selector.DeepCopy(),
	}
	class := spec.StorageClassName
	if older, ok := meta.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = &older // it wins, as it does in Kubernetes
	}
	if class != nil {
		shared := i.String(*class)
		reduced.Class = &shared
	}
	return reduced
}

// VolumeClaim reduces a PersistentVolumeClaim. The result shares nothing with the argument.
func (i *Interner) VolumeClaim(claim *corev1.PersistentVolumeClaim) *VolumeClaim {
	reduced := &VolumeClaim{
		ClaimSpec:    claimSpec(i, &claim.ObjectMeta, &claim.Spec),
		UID:          claim.UID,
		Namespace:    i.String(claim.Namespace),
		Name:         i.String(claim.Name),
		Volume:       i.String(claim.Spec.VolumeName),
		SelectedNode: i.String(claim.Annotations[selectedNodeAnnotation]),
		Lost:         claim.Status.Phase == corev1.ClaimLost,
		Deleting:     claim.DeletionTimestamp != nil,
	}
	if reduced.Volume != "" {
		// The location of the volume decides, not what was asked for or selected before it existed.
		reduced.Selector, reduced.SelectedNode = nil, ""
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" {
		reduced.Pod = owner.UID
	}
	return reduced
}

// Volume reduces a PersistentVolume.
func (i *Interner) Volume(volume *corev1.PersistentVolume) *Volume {
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	reduced := &Volume{
		Name:             i.String(volume.Name),
		Places:           reachable(volume),
		AttachableVolume: attachable(i, &volume.Spec.PersistentVolumeSource),
		Class:            i.String(volume.Spec.StorageClassName),
		Modes:            slices.Clone(volume.Spec.AccessModes),
		Bytes:            size.Value(),
		Block:            ptr.Deref(volume.Spec.VolumeMode, "") == corev1.PersistentVolumeBlock,
		Available:        volume.Status.Phase == corev1.VolumeAvailable,
		Deleting:         volume.DeletionTimestamp != nil,
	}
	if class, ok := volume.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		reduced.Class = i.String(class)
	}
	if claim := volume.Spec.ClaimRef; claim != nil {
		reduced.Claim, reduced.ClaimUID = i.String(claim.Namespace+"/"+claim.Name), claim.UID
	} else {
		reduced.Labels = i.Labels(volume.Labels)
	}
	return reduced
}

// attachable returns the CSI driver of a volume and the driver's name for it; an in-tree EBS volume belongs to the EBS CSI
// driver.
func attachable(i *Interner, source *corev1.PersistentVolumeSource) AttachableVolume {
	switch {
	case source.CSI != nil:
		return AttachableVolume{Driver: i.String(source.CSI.Driver), Handle: source.CSI.VolumeHandle}
	case source.AWSElasticBlockStore != nil:
		return AttachableVolume{Driver: ebsDriver, Handle: ebsHandle(source.AWSElasticBlockStore.VolumeID)}
	}
	return AttachableVolume{}
}

// ebsHandle returns the EC2 volume id from the name of an in-tree volume: aws://us-east-1a/vol-1, or just vol-1.
func ebsHandle(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// reachable combines what the kube-scheduler requires of a node for a volume: the volume's node affinity (plugin
// VolumeBinding) and its zone and region labels (plugin VolumeZone); nil if it requires nothing.
func reachable(volume *corev1.PersistentVolume) []Term {
	var labelled Term
	for _, key := range []string{
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	} {
		if value := volume.Labels[key]; value != "" {
			labelled = append(labelled, NewCondition(key, corev1.NodeSelectorOpIn, strings.Split(value, labelZoneSeparator)))
		}
	}
	var selector *corev1.NodeSelector
	if affinity := volume.Spec.NodeAffinity; affinity != nil {
		selector = affinity.Required
	}
	if selector == nil && labelled == nil {
		return nil
	}
	return machineTerms(alternatives(labelled, selector))
}

// machineTerms returns alternatives in canonical form, under the label keys that machines are described with.
func machineTerms(alternatives []Term) []Term {
	for a, t := range alternatives {
		alternatives[a] = t.Normalized()
	}
	return Simplified(alternatives)
}

// StorageClass reduces a StorageClass.
func (i *Interner) StorageClass(class *storagev1.StorageClass) *StorageClass {
	reduced := &StorageClass{
		Name:        i.String(class.Name),
		Provisioner: i.String(cmp.Or(migrated[class.Provisioner], class.Provisioner)),
		Delayed:     class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer,
		Default:     class.Annotations[defaultClassAnnotation] == "true" || class.Annotations[betaDefaultClassAnnotation] == "true",
		Created:     class.CreationTimestamp.Time,
	}
	if len(class.AllowedTopologies) == 0 {
		return reduced
	}
	var alternatives []Term
	for t := range class.AllowedTopologies {
		var alternative Term
		for _, e := range class.AllowedTopologies[t].MatchLabelExpressions {
			alternative = append(alternative, NewCondition(e.Key, corev1.NodeSelectorOpIn, e.Values))
		}
		if alternative != nil {
			alternatives = append(alternatives, alternative)
		}
	}
	reduced.Places = machineTerms(alternatives)
	return reduced
}

// AttachLimits returns how many volumes the CSI drivers of a node can attach to it, by driver. It leaves out a driver
// without a limit.
func (i *Interner) AttachLimits(node *storagev1.CSINode) map[string]int {
	limits := map[string]int{}
	for d := range node.Spec.Drivers {
		if driver := &node.Spec.Drivers[d]; driver.Allocatable != nil && driver.Allocatable.Count != nil {
			limits[i.String(driver.Name)] = int(*driver.Allocatable.Count)
		}
	}
	return limits
}
