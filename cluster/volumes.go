package cluster

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// storage is what a snapshot shows of volumes, and which volumes nodes hold. Each map of a snapshot is built anew when one
// of its objects has changed and shared by the snapshots in between.
type storage struct {
	claims  map[string]*plan.VolumeClaim
	volumes map[string]*plan.Volume
	classes map[string]*plan.StorageClass
	// attached are the persistent volumes attached to each node, by VolumeAttachment.
	attached map[string]map[string]string
}

// The types below give reduced objects the identity the Reflector looks for.

type volumeClaim struct{ *plan.VolumeClaim }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (v *volumeClaim) GetObjectMeta() metav1.Object { return named(v.Namespace, v.Name) }

type volume struct{ *plan.Volume }

func (v *volume) key() string { return v.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (v *volume) GetObjectMeta() metav1.Object { return named("", v.Name) }

type storageClass struct{ *plan.StorageClass }

func (c *storageClass) key() string { return c.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (c *storageClass) GetObjectMeta() metav1.Object { return named("", c.Name) }

// csiNode is how many volumes the drivers of a node attach.
type csiNode struct {
	name   string
	limits map[string]int
}

func (n *csiNode) key() string { return n.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (n *csiNode) GetObjectMeta() metav1.Object { return named("", n.name) }

// attachment is a volume attached to a node, or being attached or detached.
type attachment struct {
	name string
	// node is the node it is attached to.
	node string
	// volume is the persistent volume's name; empty for the inline volumes of in-tree drivers.
	volume string
}

func (a *attachment) key() string { return a.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (a *attachment) GetObjectMeta() metav1.Object { return named("", a.name) }

// openVolumes prepares the watches of everything that says where volumes are and how many a node can attach.
func (m *Mirror) openVolumes(w *watches) {
	core, group := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	m.storage.attached = map[string]map[string]string{}
	m.attachments = open(w, group, "volumeattachments", &storagev1.VolumeAttachment{}, nil, reduceAttachment, (*attachment).key, m.attachmentChanged)
	m.volumeClaims = open(w, core, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, nil, reduceVolumeClaim, (*volumeClaim).Key, m.volumeClaimChanged)
	m.volumes = open(w, core, "persistentvolumes", &corev1.PersistentVolume{}, nil, reduceVolume, (*volume).key, m.volumeChanged)
	m.storageClasses = open(w, group, "storageclasses", &storagev1.StorageClass{}, nil, reduceStorageClass, (*storageClass).key, m.storageClassChanged)
	m.csiNodes = open(w, group, "csinodes", &storagev1.CSINode{}, nil, reduceCSINode, (*csiNode).key, m.csiNodeChanged)
}

// storageNow is what the next snapshot shows. The lock is held.
func (m *Mirror) storageNow() plan.Storage {
	s := &m.storage
	if s.claims == nil {
		s.claims = make(map[string]*plan.VolumeClaim, len(m.volumeClaims.items))
		for key, claim := range m.volumeClaims.items {
			s.claims[key] = claim.VolumeClaim
		}
	}
	if s.volumes == nil {
		s.volumes = make(map[string]*plan.Volume, len(m.volumes.items))
		for key, volume := range m.volumes.items {
			s.volumes[key] = volume.Volume
		}
	}
	if s.classes == nil {
		s.classes = make(map[string]*plan.StorageClass, len(m.storageClasses.items))
		for key, class := range m.storageClasses.items {
			s.classes[key] = class.StorageClass
		}
	}
	return plan.Storage{Claims: s.claims, Volumes: s.volumes, Classes: s.classes}
}

// hold hangs on a node what it can attach and what is attached to it. The lock is held.
func (m *Mirror) hold(node *plan.Node) {
	if known := m.csiNodes.items[node.Name]; known != nil {
		node.AttachLimits = known.limits
	}
	if attached := m.storage.attached[node.Name]; len(attached) > 0 {
		node.Attached = slices.Sorted(maps.Values(attached))
	}
}

func reduceAttachment(interner *plan.Interner, obj any) (*attachment, error) {
	from, ok := obj.(*storagev1.VolumeAttachment)
	if !ok {
		return nil, unexpected(from, obj)
	}
	reduced := &attachment{name: from.Name, node: interner.String(from.Spec.NodeName)}
	if name := from.Spec.Source.PersistentVolumeName; name != nil {
		reduced.volume = interner.String(*name)
	}
	return reduced, nil
}

func (m *Mirror) attachmentChanged(old, now *attachment, existed, exists bool) {
	if existed && exists && *old == *now {
		return // only its status has changed
	}
	if existed && old.volume != "" {
		delete(m.storage.attached[old.node], old.name)
		if len(m.storage.attached[old.node]) == 0 {
			delete(m.storage.attached, old.node)
		}
		m.touchNode(old.node)
	}
	if exists && now.volume != "" {
		if m.storage.attached[now.node] == nil {
			m.storage.attached[now.node] = map[string]string{}
		}
		m.storage.attached[now.node][now.name] = now.volume
		m.touchNode(now.node)
	}
}

func reduceCSINode(interner *plan.Interner, obj any) (*csiNode, error) {
	node, ok := obj.(*storagev1.CSINode)
	if !ok {
		return nil, unexpected(node, obj)
	}
	return &csiNode{name: interner.String(node.Name), limits: interner.AttachLimits(node)}, nil
}

func (m *Mirror) csiNodeChanged(old, now *csiNode, existed, exists bool) {
	switch {
	case existed && exists && maps.Equal(old.limits, now.limits):
	case exists:
		m.touchNode(now.name)
	default:
		m.touchNode(old.name)
	}
}

func reduceVolumeClaim(interner *plan.Interner, obj any) (*volumeClaim, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil, unexpected(claim, obj)
	}
	return &volumeClaim{interner.VolumeClaim(claim)}, nil
}

func (m *Mirror) volumeClaimChanged(old, now *volumeClaim, existed, exists bool) {
	if existed && exists && reflect.DeepEqual(old, now) {
		m.volumeClaims.items[now.Key()] = old
		return
	}
	m.storage.claims = nil
	m.changed()
	if exists && m.waiting.mounts(now.Key()) && (!existed || helps(old.VolumeClaim, now.VolumeClaim)) {
		m.events.publish(Event{Kind: StorageChanged})
	}
}

// helps says whether a changed claim may be planned for now where it could not be before. What the kube-scheduler and the
// provisioner do for a pod that has found its node does not.
func helps(old, now *plan.VolumeClaim) bool {
	if old.SelectedNode != "" {
		return now.SelectedNode == "" && now.Volume == ""
	}
	return now.SelectedNode == ""
}

func reduceVolume(interner *plan.Interner, obj any) (*volume, error) {
	from, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return nil, unexpected(from, obj)
	}
	return &volume{interner.Volume(from)}, nil
}

func (m *Mirror) volumeChanged(old, now *volume, existed, exists bool) {
	if existed && exists && reflect.DeepEqual(old, now) {
		m.volumes.items[now.Name] = old
		return
	}
	m.storage.volumes = nil
	m.changed()
	if exists && m.awaited(now.Volume) {
		m.events.publish(Event{Kind: StorageChanged})
	}
}

// awaited says whether a pod that waits may want a volume: its claim insists on it, or may be bound to it. A volume that
// is just being made for a pod's claim is not news: the pod has found its node. The lock is held.
func (m *Mirror) awaited(volume *plan.Volume) bool {
	if volume.Claim == "" {
		return volume.Available && len(m.waiting.mounted) > 0
	}
	claim := m.volumeClaims.items[volume.Claim]
	return m.waiting.mounts(volume.Claim) && (claim == nil || claim.SelectedNode == "")
}

func reduceStorageClass(interner *plan.Interner, obj any) (*storageClass, error) {
	class, ok := obj.(*storagev1.StorageClass)
	if !ok {
		return nil, unexpected(class, obj)
	}
	return &storageClass{interner.StorageClass(class)}, nil
}

func (m *Mirror) storageClassChanged(old, now *storageClass, existed, exists bool) {
	if existed && exists && reflect.DeepEqual(old, now) {
		return
	}
	m.storage.classes = nil
	m.changed()
	if exists && len(m.waiting.mounted) > 0 {
		m.events.publish(Event{Kind: StorageChanged})
	}
}
