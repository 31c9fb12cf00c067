package starter

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// verdictEvents records Events about why nodes are kept, and about settings of pools, nodes and pods that cannot be
// read.
type verdictEvents struct {
	mirror Mirror
	// events records Kubernetes Events; nil records none.
	events       record.EventRecorder
	limiter      eventLimiter
	pools        poolSettings
	misprotected misprotected
	ends         protectionEnds
}

func newVerdictEvents(mirror Mirror, events record.EventRecorder) *verdictEvents {
	return &verdictEvents{mirror: mirror, events: events, pools: poolSettings{events: events}, misprotected: misprotected{events: events},
		ends: protectionEnds{events: events}}
}

// tell records Events about the nodes that are kept, and about settings that cannot be read. It returns when there may
// be more Events if nothing changes; zero if never.
func (v *verdictEvents) tell(snapshot *plan.Snapshot, found plan.Disruption) (next time.Time) {
	if v.events == nil {
		return time.Time{}
	}
	names, young := make(map[string]string, len(snapshot.Nodes)), map[string]bool{}
	for _, n := range snapshot.Nodes {
		names[n.Key()] = n.Name
		if !n.Initialized {
			young[n.Key()] = true
		} else if served := n.InitializedAt.Add(lasting); snapshot.Time.Before(served) {
			young[n.Key()] = true
			if next.IsZero() || served.Before(next) {
				next = served
			}
		}
	}
	pending, more := v.limiter.choose(found, young, snapshot.Time)
	if !more.IsZero() && (next.IsZero() || more.Before(next)) {
		next = more
	}
	for _, t := range pending {
		if claim := v.mirror.Claim(t.node); claim != nil {
			v.record(claim, &corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodeClaim", Name: claim.Name, UID: claim.UID}, t)
		}
		if node := v.mirror.Node(names[t.node]); node != nil {
			v.record(node, node, t)
		}
	}
	if end := v.ends.tell(snapshot); !end.IsZero() && (next.IsZero() || end.Before(next)) {
		next = end
	}
	v.pools.tell(snapshot)
	if v.misprotected.tell(snapshot) {
		next = snapshot.Time
	}
	return next
}

func (v *verdictEvents) record(of metav1.Object, object runtime.Object, t pendingEvent) {
	if of.GetDeletionTimestamp() == nil {
		v.events.Event(object, corev1.EventTypeNormal, t.reason, t.message)
	}
}
