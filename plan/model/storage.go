package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Storage describes a cluster's volumes, as far as they decide where pods can run. An Interner makes the values.
type Storage struct {
	// Claims are the PersistentVolumeClaims by namespace/name.
	Claims map[string]*VolumeClaim
	// Volumes are the PersistentVolumes by name.
	Volumes map[string]*Volume
	// Classes are the StorageClasses by name.
	Classes map[string]*StorageClass
}

// Mounts are the volumes that have to be available on a pod's node. A Pod without such volumes has a nil Mounts.
type Mounts struct {
	// Claims are the persistent volume claims the pod mounts, ordered by name, each once.
	Claims []MountedClaim
	// Inline are the volumes that the pod names itself and a CSI driver attaches: those of in-tree drivers.
	Inline []AttachableVolume
}

// Names are the names of the claims; none for a nil Mounts.
func (m *Mounts) Names() []string {
	if m == nil {
		return nil
	}
	names := make([]string, len(m.Claims))
	for i := range m.Claims {
		names[i] = m.Claims[i].Name
	}
	return names
}

// MountedClaim is one persistent volume claim of a pod.
type MountedClaim struct {
	// Name is the claim's, in the pod's namespace. A generic ephemeral volume's is <pod>-<volume>.
	Name string
	// Ephemeral is the template of a generic ephemeral volume; nil for an ordinary claim. Until Kubernetes has created the
	// claim, the template says what it will be.
	Ephemeral *ClaimSpec
}

// AttachableVolume identifies a volume to the driver that attaches it.
type AttachableVolume struct {
	// Driver is the CSI driver, even if the volume names the in-tree driver that it has replaced.
	Driver string
	// Handle is the driver's name for the volume.
	Handle string
}

// ClaimSpec is what a claim asks of a volume.
type ClaimSpec struct {
	// Class is the StorageClass's name. It is nil where the cluster's default applies, and empty for volumes that no
	// provisioner makes.
	Class *string
	// Modes are the access modes asked for.
	Modes []corev1.PersistentVolumeAccessMode
	// Bytes is the size asked for.
	Bytes int64
	// Block says that the volume is to be a raw device.
	Block bool
	// Selector restricts which existing volumes may be bound; nil does not.
	Selector *metav1.LabelSelector
}

// VolumeClaim is a PersistentVolumeClaim.
type VolumeClaim struct {
	ClaimSpec
	UID       types.UID
	Namespace string
	Name      string
	// Volume is the PersistentVolume that the claim is bound to or names; empty while it has none.
	Volume string
	// SelectedNode is the Node the kube-scheduler has chosen, while the volume is being provisioned for it.
	SelectedNode string
	// Pod is the pod that a generic ephemeral volume's claim belongs to; empty for any other claim.
	Pod types.UID
	// Lost says that the volume is gone for good.
	Lost bool
	// Deleting says that the claim has been deleted, but still exists because it is in use.
	Deleting bool
}

// Key is namespace/name.
func (c *VolumeClaim) Key() string { return c.Namespace + "/" + c.Name }

// Volume is a PersistentVolume.
type Volume struct {
	Name string
	// Places are the alternatives for the labels of a node that reaches the volume: nil if every node does, and empty if
	// none does.
	Places []Term
	// AttachableVolume is empty for a volume that is not attached by a CSI driver.
	AttachableVolume
	// Class is the StorageClass's name; empty if it has none.
	Class string
	Modes []corev1.PersistentVolumeAccessMode
	// Bytes is the volume's size.
	Bytes int64
	// Block says that the volume is a raw device.
	Block bool
	// Labels are what the selectors of claims match; set only while no claim has the volume.
	Labels map[string]string
	// Claim is the claim, by namespace/name, that the volume is bound to or reserved for; ClaimUID may be empty for the
	// latter.
	Claim    string
	ClaimUID types.UID
	// Available says that a claim may be bound to the volume.
	Available bool
	// Deleting says that the volume has been deleted and is not gone yet.
	Deleting bool
}

// StorageClass is a StorageClass.
type StorageClass struct {
	Name string
	// Provisioner makes its volumes: a CSI driver, even if the class names the in-tree driver that it has replaced.
	Provisioner string
	// Delayed says that a volume is made or bound for the first pod that needs it, where that pod is placed.
	Delayed bool
	// Places are the alternatives for the labels of a node for which volumes can be made: nil for every node, and empty for
	// none.
	Places []Term
	// Default says that claims without a class get this one. Of several, the one created last counts.
	Default bool
	Created time.Time
}

// DefaultClass is the StorageClass of claims that name none, or nil.
func (s *Storage) DefaultClass() *StorageClass {
	var found *StorageClass
	for _, class := range s.Classes {
		if !class.Default {
			continue
		}
		if found == nil || class.Created.After(found.Created) || class.Created.Equal(found.Created) && class.Name < found.Name {
			found = class
		}
	}
	return found
}
