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

// storage is what a snapshot shows of volumes, and which volumes are attached to nodes. Each map is rebuilt when one of
// its objects has changed, and shared by the snapshots in between.
type storage struct {
	*shared
	places  *places
	waiting *waiting

	attachments    *feed[*attachment]
	volumeClaims   *feed[*volumeClaim]
	volumes        *feed[*volume]
	storageClasses *feed[*storageClass]
	csiNodes       *feed[*csiNode]

	// shownClaims, shownVolumes and shownClasses are what snapshots show of them; nil when one has changed.
	shownClaims  map[string]*plan.VolumeClaim
	shownVolumes map[string]*plan.Volume
	shownClasses map[string]*plan.StorageClass
	// attached are the persistent volumes attached to each node, by VolumeAttachment.
	attached map[string]map[string]string
}

// The types below give reduced objects the metadata that the Reflector looks for.

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

// csiNode is a CSINode, reduced to how many volumes each driver can attach to the node.
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

// newStorage prepares the watches of the resources that tell where volumes are and how many a node can attach.
func newStorage(w *watches, places *places, waiting *waiting) *storage {
	s := &storage{shared: w.shared, places: places, waiting: waiting, attached: map[string]map[string]string{}}
	core, group := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	s.attachments = open(w, group, "volumeattachments", &storagev1.VolumeAttachment{}, nil, reduceAttachment, (*attachment).key, s.attachmentChanged)
	s.volumeClaims = open(w, core, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, nil, reduceVolumeClaim, (*volumeClaim).Key, s.volumeClaimChanged)
	s.volumes = open(w, core, "persistentvolumes", &corev1.PersistentVolume{}, nil, reduceVolume, (*volume).key, s.volumeChanged)
	s.storageClasses = open(w, group, "storageclasses", &storagev1.StorageClass{}, nil, reduceStorageClass, (*storageClass).key, s.storageClassChanged)
	s.csiNodes = open(w, group, "csinodes", &storagev1.CSINode{}, nil, reduceCSINode, (*csiNode).key, s.csiNodeChanged)
	return s
}

// Attached returns the persistent volumes attached to a node, ordered by name.
func (s *storage) Attached(node string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Values(s.attached[node]))
}

// now is what the next snapshot shows. The lock is held.
func (s *storage) now() plan.Storage {
	if s.shownClaims == nil {
		s.shownClaims = make(map[string]*plan.VolumeClaim, len(s.volumeClaims.items))
		for key, claim := range s.volumeClaims.items {
			s.shownClaims[key] = claim.VolumeClaim
		}
	}
	if s.shownVolumes == nil {
		s.shownVolumes = make(map[string]*plan.Volume, len(s.volumes.items))
		for key, volume := range s.volumes.items {
			s.shownVolumes[key] = volume.Volume
		}
	}
	if s.shownClasses == nil {
		s.shownClasses = make(map[string]*plan.StorageClass, len(s.storageClasses.items))
		for key, class := range s.storageClasses.items {
			s.shownClasses[key] = class.StorageClass
		}
	}
	return plan.Storage{Claims: s.shownClaims, Volumes: s.shownVolumes, Classes: s.shownClasses}
}

// hold sets on a node what it can attach and what is attached to it. The lock is held.
func (s *storage) hold(node *plan.Node) {
	if known := s.csiNodes.items[node.Name]; known != nil {
		node.AttachLimits = known.limits
	}
	if attached := s.attached[node.Name]; len(attached) > 0 {
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

func (s *storage) attachmentChanged(old, now *attachment, existed, exists bool) {
	if existed && exists && *old == *now {
		return // only its status has changed
	}
	if existed && old.volume != "" {
		delete(s.attached[old.node], old.name)
		if len(s.attached[old.node]) == 0 {
			delete(s.attached, old.node)
		}
		s.places.touchNode(old.node)
	}
	if exists && now.volume != "" {
		if s.attached[now.node] == nil {
			s.attached[now.node] = map[string]string{}
		}
		s.attached[now.node][now.name] = now.volume
		s.places.touchNode(now.node)
	}
}

func reduceCSINode(interner *plan.Interner, obj any) (*csiNode, error) {
	node, ok := obj.(*storagev1.CSINode)
	if !ok {
		return nil, unexpected(node, obj)
	}
	return &csiNode{name: interner.String(node.Name), limits: interner.AttachLimits(node)}, nil
}

func (s *storage) csiNodeChanged(old, now *csiNode, existed, exists bool) {
	switch {
	case existed && exists && maps.Equal(old.limits, now.limits):
	case exists:
		s.places.touchNode(now.name)
	default:
		s.places.touchNode(old.name)
	}
}

func reduceVolumeClaim(interner *plan.Interner, obj any) (*volumeClaim, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil, unexpected(claim, obj)
	}
	return &volumeClaim{interner.VolumeClaim(claim)}, nil
}

func (s *storage) volumeClaimChanged(old, now *volumeClaim, existed, exists bool) {
	if existed && exists && reflect.DeepEqual(old, now) {
		s.volumeClaims.items[now.Key()] = old
		return
	}
	s.shownClaims = nil
	s.changed()
	if exists && s.waiting.mounts(now.Key()) && (!existed || helps(old.VolumeClaim, now.VolumeClaim)) {
		s.publish(Event{Kind: StorageChanged})
	}
}

// helps says whether a change of a claim lets Tenon plan for it now. Changes that the kube-scheduler and the
// provisioner make for a pod that has found its node do not.
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

func (s *storage) volumeChanged(old, now *volume, existed, exists bool) {
	if existed && exists && reflect.DeepEqual(old, now) {
		s.volumes.items[now.Name] = old
		return
	}
	s.shownVolumes = nil
	s.changed()
	if exists && s.awaited(now.Volume) {
		s.publish(Event{Kind: StorageChanged})
	}
}

// awaited says whether a pending pod may need a volume: the volume names the pod's claim, or the claim may be bound to
// it. A volume that is being provisioned for a pod's claim is not news: the pod has found its node. The lock is held.
func (s *storage) awaited(volume *plan.Volume) bool {
	if volume.Claim == "" {
		return volume.Available && len(s.waiting.mounted) > 0
	}
	claim := s.volumeClaims.items[volume.Claim]
	return s.waiting.mounts(volume.Claim) && (claim == nil || claim.SelectedNode == "")
}

func reduceStorageClass(interner *plan.Interner, obj any) (*storageClass, error) {
	class, ok := obj.(*storagev1.StorageClass)
	if !ok {
		return nil, unexpected(class, obj)
	}
	return &storageClass{interner.StorageClass(class)}, nil
}

func (s *storage) storageClassChanged(old, now *storageClass, existed, exists bool) {
	if existed && exists && reflect.DeepEqual(old, now) {
		return
	}
	s.shownClasses = nil
	s.changed()
	if exists && len(s.waiting.mounted) > 0 {
		s.publish(Event{Kind: StorageChanged})
	}
}
