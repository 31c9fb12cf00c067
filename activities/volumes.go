package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/workflows"
)

// volumeWatch follows the volumes attached to one node. If an instance is terminated with a volume attached, the volume
// cannot be attached elsewhere for minutes, so a drain waits until the attach-detach controller has detached it.
type volumeWatch struct {
	client client.WithWatch
	node   string
	// shown returns the volumes that the mirror shows attached to the node; nil if there is no mirror.
	shown func(node string) []string
	// attached maps the name of a VolumeAttachment to its persistent volume; nil before the first list.
	attached map[string]string
	events   watch.Interface
}

// follow lists the attachments of the node and, if there are any, watches them. VolumeAttachments cannot be selected by
// node, so follow avoids the list and the watch where it can: what is attached to a closed node was attached before it was
// closed, and the mirror shows it.
func (v *volumeWatch) follow(ctx context.Context) error {
	if v.attached != nil && (v.events != nil || len(v.attached) == 0) {
		return nil
	}
	if v.attached == nil && v.shown != nil && len(v.shown(v.node)) == 0 {
		v.attached = map[string]string{}
		return nil
	}
	var list storagev1.VolumeAttachmentList
	if err := v.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list volume attachments: %w", err)
	}
	v.attached = map[string]string{}
	for i := range list.Items {
		v.keep(&list.Items[i])
	}
	if len(v.attached) == 0 {
		return nil
	}
	events, err := v.client.Watch(ctx, &storagev1.VolumeAttachmentList{}, from(list.ResourceVersion))
	if err != nil {
		return fmt.Errorf("watch volume attachments: %w", err)
	}
	v.events = events
	return nil
}

// change handles an event of the watch.
func (v *volumeWatch) change(event watch.Event, open bool) {
	attachment, ok := event.Object.(*storagev1.VolumeAttachment)
	switch {
	case !open || event.Type == watch.Error:
		v.close()
	case !ok:
	case event.Type == watch.Deleted:
		delete(v.attached, attachment.Name)
	default:
		v.keep(attachment)
	}
}

func (v *volumeWatch) keep(attachment *storagev1.VolumeAttachment) {
	if attachment.Spec.NodeName != v.node {
		return
	}
	volume := attachment.Name
	if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
		volume = *name
	}
	v.attached[attachment.Name] = volume
}

// blockers returns the volumes that still have to be detached: all but those of pods that stay on the node.
func (v *volumeWatch) blockers(ctx context.Context, staying []*corev1.Pod) ([]workflows.Blocker, error) {
	if len(v.attached) == 0 {
		return nil, nil
	}
	keep, err := v.volumesOf(ctx, staying)
	if err != nil {
		return nil, err
	}
	var blockers []workflows.Blocker
	for _, volume := range slices.Sorted(maps.Values(v.attached)) {
		if !keep[volume] {
			blockers = append(blockers, workflows.Blocker{Cause: blockedByVolume, By: volume, Message: "volume " + volume + " is still attached"})
		}
	}
	return blockers, nil
}

// volumesOf returns the persistent volumes that pods use through PersistentVolumeClaims.
func (v *volumeWatch) volumesOf(ctx context.Context, pods []*corev1.Pod) (map[string]bool, error) {
	used := map[string]bool{}
	for _, pod := range pods {
		for _, volume := range pod.Spec.Volumes {
			var name string
			switch {
			case volume.PersistentVolumeClaim != nil:
				name = volume.PersistentVolumeClaim.ClaimName
			case volume.Ephemeral != nil:
				name = pod.Name + "-" + volume.Name
			default:
				continue
			}
			var claim corev1.PersistentVolumeClaim
			err := v.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &claim)
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return nil, fmt.Errorf("read volume claim %s of pod %s: %w", name, pod.Name, err)
			default:
				used[claim.Spec.VolumeName] = true
			}
		}
	}
	return used, nil
}

func (v *volumeWatch) close() {
	stopWatch(v.events)
	v.events = nil
}
