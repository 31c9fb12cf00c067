package activities

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

const (
	// maxExplain bounds the Events of one plan: what thousands of pods have in common is in Provisioning's details.
	maxExplain = 50
	// explainAgain is how long the same is not said of the same pod again. Karpenter keeps the same time.
	explainAgain = 5 * time.Minute
)

// explained tells why pods stay pending, and remembers what was said of which. It is this process's memory only: after a restart all is said again.
type explained struct {
	events recorder

	mu   sync.Mutex
	said map[explanation]time.Time
}

type explanation struct {
	pod     types.UID
	message string
}

// choose returns what to say now of unplaced pods, at most so many: first one pod for every reason, then others.
func (e *explained) choose(unplaced []plan.Unplaced, now time.Time) []toldPod {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, at := range e.said {
		if now.Sub(at) >= explainAgain {
			delete(e.said, key)
		}
	}
	if e.said == nil {
		e.said = map[explanation]time.Time{}
	}
	var chosen []toldPod
	covered := map[string]bool{}
	for _, first := range []bool{true, false} {
		for i := range unplaced {
			pod := unplaced[i].Pod
			if len(chosen) == maxExplain {
				return chosen
			}
			if pod.Virtual {
				continue
			}
			key := explanation{pod.UID, shortened("Failed to schedule pod, " + reasons(unplaced[i].Reasons))}
			if _, said := e.said[key]; said || first && covered[key.message] {
				continue
			}
			covered[key.message] = true
			e.said[key] = now
			chosen = append(chosen, toldPod{pod, key.message})
		}
	}
	return chosen
}

// toldPod is a pod and what is said of it.
type toldPod struct {
	pod     *plan.Pod
	message string
}

// explain tells people with kubectl why a pod stays pending.
func (e *explained) explain(unplaced []plan.Unplaced, growth map[types.UID]plan.Growth, now time.Time) {
	for _, told := range e.choose(unplaced, time.Now()) {
		reason := "FailedScheduling"
		if growth[told.pod.UID].Paused(now) {
			reason = "GrowthPaused"
		}
		e.events.tell(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: told.pod.Namespace, Name: told.pod.Name, UID: told.pod.UID},
			corev1.EventTypeWarning, reason, told.message)
	}
}
