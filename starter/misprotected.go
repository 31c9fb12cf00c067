package starter

import (
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// eventMisprotected says that a value of karpenter.sh/do-not-disrupt cannot be read. It counts as "true".
const eventMisprotected = "InvalidDoNotDisruptAnnotation"

// misprotected records Events about pods and nodes whose protection annotation is invalid.
type misprotected struct {
	events record.EventRecorder
	// said are the hashes of the values that Events were recorded for.
	said map[types.UID]uint64
}

// tell records an Event for each pod and node whose protection is invalid, once for each value, and at most maxEvents
// after one look. It returns whether there are more.
func (m *misprotected) tell(snapshot *plan.Snapshot) (more bool) {
	said, count := map[types.UID]uint64{}, 0
	tell := func(object *corev1.ObjectReference, value string) {
		mark := valueMark(value)
		switch {
		case m.said[object.UID] == mark:
		case count == maxEvents:
			more = true
			return
		default:
			count++
			if _, _, err := plan.Protection(value); err != nil {
				m.events.Event(object, corev1.EventTypeWarning, eventMisprotected, err.Error())
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
	m.said = said
	return more
}

func valueMark(value string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(value))
	return hash.Sum64()
}
