package starter

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/tenon-sh/tenon/plan"
)

// The reasons, Karpenter's, of the Events about a pod that protects its node for a limited time.
const (
	// eventProtectedUntil says until when a pod keeps its node from being disrupted.
	eventProtectedUntil = "DoNotDisruptUntil"
	// eventProtectionEnded says that the protection is over.
	eventProtectionEnded = "DoNotDisruptGracePeriodElapsed"
)

// protectionEnds records Events about pods whose karpenter.sh/do-not-disrupt is a duration: when it ends, and that it has ended.
type protectionEnds struct {
	events record.EventRecorder
	// said are the ends that Events were recorded about, and whether also that they have come.
	said map[types.UID]protectionEnd
}

type protectionEnd struct {
	at   time.Time
	come bool
}

// tell records each Event once, at most maxEvents after one look. It returns when there may be more; zero if never.
func (p *protectionEnds) tell(snapshot *plan.Snapshot) (next time.Time) {
	said, count := map[types.UID]protectionEnd{}, 0
	tell := func(pod *plan.Pod, reason, message string) bool {
		if count == maxEvents {
			next = snapshot.Time
			return false
		}
		count++
		p.events.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, corev1.EventTypeNormal, reason, message)
		return true
	}
	for _, n := range snapshot.Nodes {
		if !n.Managed() {
			continue
		}
		for _, pod := range n.Pods {
			if !pod.DoNotDisrupt || pod.DoNotDisruptFor <= 0 || pod.Started.IsZero() || pod.Misprotected != "" {
				continue
			}
			end := pod.Started.Add(pod.DoNotDisruptFor)
			known := p.said[pod.UID]
			switch come := !snapshot.Time.Before(end); {
			case come && !known.come:
				if tell(pod, eventProtectionEnded, "The time of karpenter.sh/do-not-disrupt is over: the pod may be disrupted now") {
					known = protectionEnd{end, true}
				}
			case !come && !known.at.Equal(end):
				if tell(pod, eventProtectedUntil, "karpenter.sh/do-not-disrupt protects the pod until "+end.UTC().Format(time.RFC3339)) {
					known = protectionEnd{end, false}
				}
			}
			if !known.come && (next.IsZero() || end.Before(next)) {
				next = end
			}
			if known != (protectionEnd{}) {
				said[pod.UID] = known
			}
		}
	}
	p.said = said
	return next
}
