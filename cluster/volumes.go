package cluster

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Attachment is a volume attached to a node, or being attached or detached.
type Attachment struct {
	Name string
	// Node is the node it is attached to.
	Node string
	// Volume is the persistent volume's name; empty for the inline volumes of migrated in-tree drivers.
	Volume string
	// Attacher is the CSI driver's name.
	Attacher string
	// Detaching says that the attachment has been deleted and is still there.
	Detaching bool
}

func (a *Attachment) key() string { return a.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (a *Attachment) GetObjectMeta() metav1.Object { return named("", a.Name) }

func (m *Mirror) reduceAttachment(obj any) (*Attachment, error) {
	attachment, ok := obj.(*storagev1.VolumeAttachment)
	if !ok {
		return nil, unexpected(attachment, obj)
	}
	reduced := &Attachment{
		Name:      attachment.Name,
		Node:      m.interner.String(attachment.Spec.NodeName),
		Attacher:  m.interner.String(attachment.Spec.Attacher),
		Detaching: attachment.DeletionTimestamp != nil,
	}
	if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
		reduced.Volume = m.interner.String(*name)
	}
	return reduced, nil
}

func (m *Mirror) attachmentChanged(old, now *Attachment, existed, exists bool) {
	if existed {
		m.events.publish(Event{Kind: VolumesChanged, Name: old.Node})
	}
	if exists && (!existed || old.Node != now.Node) {
		m.events.publish(Event{Kind: VolumesChanged, Name: now.Node})
	}
}

// volumeClaim is a persistent volume claim: all that is needed of it is which volume it is bound to.
type volumeClaim struct {
	namespace, name string
	volume          string
}

func (v *volumeClaim) key() string { return v.namespace + "/" + v.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (v *volumeClaim) GetObjectMeta() metav1.Object { return named(v.namespace, v.name) }

func (m *Mirror) reduceVolumeClaim(obj any) (*volumeClaim, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil, unexpected(claim, obj)
	}
	return &volumeClaim{
		namespace: m.interner.String(claim.Namespace),
		name:      m.interner.String(claim.Name),
		volume:    m.interner.String(claim.Spec.VolumeName),
	}, nil
}

func (m *Mirror) volumeClaimChanged(_, _ *volumeClaim, _, _ bool) {}
