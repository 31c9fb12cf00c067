package devices

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// fromTemplate returns the claim that would be made for a pod that does not exist yet; nil if there is no such template.
func (x *Index) fromTemplate(namespace, template string) *resourcev1.ResourceClaim {
	made := x.known.Templates[namespace+"/"+template]
	if made == nil {
		return nil
	}
	return &resourcev1.ResourceClaim{ObjectMeta: made.Spec.ObjectMeta, Spec: made.Spec.Spec}
}

// WithDaemons returns the room that the pods of some DaemonSets leave, which will still start on the node. A claim that all
// pods of a DaemonSet share is not theirs alone, and takes nothing here. Pods that find no devices wait, and take nothing
// either.
func (r *Room) WithDaemons(sets []*model.DaemonSet) *Room {
	if r == nil {
		return nil
	}
	room := r
	for _, set := range sets {
		var needs Needs
		for _, entry := range set.Claims.All() {
			if claim := r.index.fromTemplate(set.Namespace, entry.Template); entry.Template != "" && claim != nil {
				needs.own = append(needs.own, asked{entry: entry.Entry, key: set.Namespace + "/" + entry.Template, claim: claim})
			}
		}
		if next := room.with(&needs); next != nil {
			room = next
		}
	}
	if room == r {
		return r
	}
	for i := range room.kinds {
		room.kinds[i].drivers = nil // the node does not wait for the devices of DaemonSets
	}
	return room
}
