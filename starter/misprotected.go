package starter

import (
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// eventMisprotected is the reason of the Event about a value of karpenter.sh/do-not-disrupt that means nothing.
const eventMisprotected = "InvalidDoNotDisruptAnnotation"

// tellMisprotected says of pods and nodes that they are not protected as somebody seems to have meant, once for each
// value, of so many at most after one look. It says whether there are more.
func (s *Starter) tellMisprotected(snapshot *plan.Snapshot) (more bool) {
	said, count := map[types.UID]uint64{}, 0
	tell := func(object *corev1.ObjectReference, value string) {
		mark := valueMark(value)
		switch {
		case s.verdicts.misprotected[object.UID] == mark:
		case count == verdictsMost:
			more = true
			return
		default:
			count++
			if _, _, err := plan.Protection(value); err != nil {
				s.Events.Event(object, corev1.EventTypeWarning, eventMisprotected, shortened(err.Error()))
			}
		}
		said[object.UID] = mark
	}
	for _, n := range snapshot.Nodes {
		if !n.Managed() {
			continue
		}
		if n.Misprotected != "" {
			if n.Name != "" {
				tell(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}, n.Misprotected)
			}
			tell(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodeClaim", Name: n.Claim, UID: n.ClaimUID}, n.Misprotected)
		}
		for _, pod := range n.Pods {
			if pod.Misprotected != "" {
				tell(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, pod.Misprotected)
			}
		}
	}
	s.verdicts.misprotected = said
	return more
}

func valueMark(value string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(value))
	return hash.Sum64()
}
